// A bare gRPC server: what transport alone costs, by the API and on the threads that the server
// uses.
#pragma once

#include <cstdint>

namespace attend::bench {

struct EchoOptions {
  int64_t d_f = 0;      // what GetModel says
  bool refuse = false;  // answer with RESOURCE_EXHAUSTED instead of the request's bytes
  int pollers = 2;
};

// Serves attend.v1.Attention on a free port and prints "listening grpc=ADDRESS"; Attend gives every
// request's bytes back. Blocks until the process is killed.
int ServeEcho(const EchoOptions& options);

}  // namespace attend::bench

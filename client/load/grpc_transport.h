// Load over real gRPC, cheap for the client: bodies are not serialised but put together from a few
// bytes and a view of numbers that all calls share, and of answers only the timing is read.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "attend/v1/attend.pb.h"
#include "client/channel.h"
#include "client/load/load_run.h"
#include "client/protocol.h"

namespace attend::client {

struct LoadTarget {
  ChannelOptions channel;
  Protocol protocol = Protocol::kAttend;
  int channels = 1;  // connections to each target; calls take them in turn
  int threads = 1;   // that carry answers
  int max_open_calls = 20'000;
  v1::AttendRequest request;  // what all calls share; its items and priority are replaced
  int64_t d_f = 0;
  int64_t longest = 0;  // no call has more items
  uint64_t seed = 0;    // of the items' numbers, uniform in [-1, 1)
};

// Connects, or tries for as long as a few seconds. Errors as of MakeChannel.
absl::StatusOr<std::unique_ptr<LoadTransport>> MakeGrpcTransport(const LoadTarget& target);

// The system's steady clock, from the moment it is made.
std::unique_ptr<LoadClock> MakeRealClock();

}  // namespace attend::client

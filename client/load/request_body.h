// Request bodies that share their numbers, and the one thing that is read from answers.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/v1/attend.pb.h"
#include "client/load/call.h"

namespace attend::client {

// Serialised AttendRequests with any number of items up to `longest`. Thread-safe. Its bodies view
// its numbers, so it outlives the calls.
class RequestBodies {
 public:
  // Items are uniform in [-1, 1); `shared` is the rest of every request.
  RequestBodies(v1::AttendRequest shared, int64_t d_f, int64_t longest, uint64_t seed);

  // 1 <= items <= longest.
  grpc::ByteBuffer Body(int64_t items, uint32_t priority) const;

 private:
  const v1::AttendRequest shared_;
  const int64_t d_f_;
  std::vector<float> numbers_;  // [longest, d_f]
};

// Fills queue and compute time from the Timing of a serialised AttendResponse, without reading its
// tensors. False when the body is no AttendResponse.
bool ReadTiming(grpc::ByteBuffer* body, LoadReply* reply);

}  // namespace attend::client

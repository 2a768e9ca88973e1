// Request bodies that share their numbers, and the one thing that is read from answers.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/v1/attend.pb.h"
#include "client/load/call.h"
#include "client/protocol.h"

namespace attend::client {

// The numbers of all calls: [longest, d_f], uniform in [-1, 1).
struct BodyNumbers {
  int64_t longest = 0;
  int64_t d_f = 0;
  uint64_t seed = 0;
};

// Serialised requests with any number of items up to the longest. Thread-safe. Its bodies view its
// numbers, so it outlives the calls.
class RequestBodies {
 public:
  // `shared` is the rest of every request. By the Open Inference Protocol that is its model,
  // version and causal.
  RequestBodies(Protocol protocol, const v1::AttendRequest& shared, const BodyNumbers& numbers);

  // 1 <= items <= longest.
  grpc::ByteBuffer Body(int64_t items, uint32_t priority) const;
  // Fills in the Timing of a serialised answer, where the protocol has one, without reading its
  // tensors. False when the body is no answer.
  bool ReadAnswer(grpc::ByteBuffer* body, LoadReply* reply) const;

 private:
  // The body up to its numbers, of which there are `bytes`.
  std::string AttendHead(int64_t items, uint32_t priority, uint32_t bytes) const;
  std::string OipHead(int64_t items, uint32_t priority, uint32_t bytes) const;

  const Protocol protocol_;
  const int64_t d_f_;
  std::string shared_;  // serialised, of the protocol's own kind
  std::vector<float> numbers_;
};

}  // namespace attend::client

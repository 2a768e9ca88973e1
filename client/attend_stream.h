// Many sequences on one call, through streams that may break.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"

namespace attend::client {

// The requests of one AttendMany that have no answer yet, by request_id. Thread-compatible; id
// may be called while an answer is taken.
class UnansweredRequests {
 public:
  // INVALID_ARGUMENT for a request_id that occurs twice; empty ones become the request's number.
  static absl::StatusOr<UnansweredRequests> Of(std::span<const v1::AttendRequest> requests);

  bool empty() const { return index_of_.empty(); }
  // What to send, in the requests' order.
  std::vector<size_t> indices() const;
  const std::string& id(size_t index) const { return ids_[index]; }
  // The request's index; nothing when `id` is none of ours or was answered before.
  std::optional<size_t> TakeAnswer(const std::string& id);

 private:
  std::vector<std::string> ids_;
  std::unordered_map<std::string, size_t> index_of_;
};

using StreamDone = std::function<void(size_t index, absl::StatusOr<v1::AttendResponse>)>;

// One stream: sends what is unanswered and calls `done` for each answer until the server ends it.
absl::Status RunStream(v1::Attention::Stub* stub, grpc::ClientContext* context,
                       std::span<const v1::AttendRequest> requests, UnansweredRequests* unanswered,
                       const StreamDone& done);

}  // namespace attend::client

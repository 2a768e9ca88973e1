#include "client/attend_stream.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "client/errors.h"

namespace attend::client {

absl::StatusOr<UnansweredRequests> UnansweredRequests::Of(
    std::span<const v1::AttendRequest> requests) {
  UnansweredRequests unanswered;
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string& given = requests[i].request_id();
    unanswered.ids_.push_back(given.empty() ? absl::StrCat(i) : given);
    if (!unanswered.index_of_.emplace(unanswered.ids_.back(), i).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("request_id '", unanswered.ids_.back(), "' occurs twice on one stream"));
    }
  }
  return unanswered;
}

std::vector<size_t> UnansweredRequests::indices() const {
  std::vector<size_t> indices;
  for (const auto& [id, index] : index_of_) indices.push_back(index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::optional<size_t> UnansweredRequests::TakeAnswer(const std::string& id) {
  const auto found = index_of_.find(id);
  if (found == index_of_.end()) return std::nullopt;
  const size_t index = found->second;
  index_of_.erase(found);
  return index;
}

absl::Status RunStream(v1::Attention::Stub* stub, grpc::ClientContext* context,
                       std::span<const v1::AttendRequest> requests, UnansweredRequests* unanswered,
                       const StreamDone& done) {
  const auto stream = stub->AttendStream(context);
  // Sending waits for the server's flow control, so answers are read at the same time.
  std::thread sender([&, indices = unanswered->indices()] {
    for (const size_t index : indices) {
      bool sent;
      if (requests[index].request_id().empty()) {
        v1::AttendRequest named = requests[index];
        named.set_request_id(unanswered->id(index));
        sent = stream->Write(named);
      } else {
        sent = stream->Write(requests[index]);
      }
      if (!sent) return;
    }
    stream->WritesDone();
  });
  v1::AttendResponse response;
  while (stream->Read(&response)) {
    const std::optional<size_t> index = unanswered->TakeAnswer(response.request_id());
    if (!index) continue;
    if (response.has_error()) {
      done(*index, FromStream(response.error()));
    } else {
      done(*index, std::move(response));
    }
  }
  sender.join();
  return FromGrpc(stream->Finish());
}

}  // namespace attend::client

#include "client/errors.h"

#include <absl/strings/cord.h>

#include "google/rpc/error_details.pb.h"

namespace attend::client {
namespace {

constexpr char kDetailsUrl[] = "type.googleapis.com/google.rpc.Status";

// The first detail of type Detail, or nothing.
template <typename Detail>
std::optional<Detail> FindDetail(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailsUrl);
  google::rpc::Status details;
  if (!payload || !details.ParseFromString(std::string(*payload))) return std::nullopt;
  for (const auto& any : details.details()) {
    Detail detail;
    if (any.Is<Detail>() && any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (!result.ok() && !status.error_details().empty()) {
    result.SetPayload(kDetailsUrl, absl::Cord(status.error_details()));
  }
  return result;
}

absl::Status FromStream(const google::rpc::Status& error) {
  return FromGrpc(
      {static_cast<grpc::StatusCode>(error.code()), error.message(), error.SerializeAsString()});
}

std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::RetryInfo>(status);
  if (!info || !info->has_retry_delay()) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(info->retry_delay().seconds()) +
      std::chrono::nanoseconds(info->retry_delay().nanos()));
}

std::optional<std::string> Reason(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status);
  if (!info) return std::nullopt;
  return info->reason();
}

}  // namespace attend::client

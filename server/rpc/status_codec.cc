#include "server/rpc/status_codec.h"

#include <absl/strings/str_cat.h>

#include "google/rpc/error_details.pb.h"
#include "server/batching/refusal.h"
#include "server/rpc/invalid_field.h"

namespace attend {

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status rpc;
  rpc.set_code(static_cast<int>(status.code()));
  rpc.set_message(std::string(status.message()));
  if (const auto retry_after = RetryAfterOf(status)) {
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(retry_after->count() / 1000);
    info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(retry_after->count() % 1000) *
                                          1'000'000);
    rpc.add_details()->PackFrom(info);
  }
  if (const auto reason = ReasonOf(status)) {
    google::rpc::ErrorInfo info;
    info.set_reason(std::string(RefusalName(*reason)));
    info.set_domain("attend");
    rpc.add_details()->PackFrom(info);
  }
  if (const auto field = FieldOf(status)) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(*field);
    violation->set_description(rpc.message());
    rpc.add_details()->PackFrom(bad);
  }
  return rpc;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status rpc = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(rpc.code()), rpc.message(),
                      rpc.details().empty() ? std::string() : rpc.SerializeAsString());
}

std::optional<std::string> RetryPushback(const absl::Status& status) {
  const auto retry_after = RetryAfterOf(status);
  if (!retry_after) return std::nullopt;
  return absl::StrCat(retry_after->count());
}

}  // namespace attend

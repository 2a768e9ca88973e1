// From the status of a refusal to gRPC's: code, message, details, and what a retrying client reads.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "google/rpc/status.pb.h"

namespace attend {

// google.rpc.Status with RetryInfo, ErrorInfo (the refusal's reason) and BadRequest where known.
google::rpc::Status ToRpcStatus(const absl::Status& status);
// The same for gRPC; the details go where grpc-status-details-bin is sent from.
grpc::Status ToGrpcStatus(const absl::Status& status);
// The value of grpc-retry-pushback-ms; nothing when the status has no time to retry after.
std::optional<std::string> RetryPushback(const absl::Status& status);

}  // namespace attend

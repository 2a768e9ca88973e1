// A failed call as an absl::Status that still knows what the server said besides its message.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "google/rpc/status.pb.h"

namespace attend::client {

// The same code and message. The server's error details, if any, are kept for the two below.
absl::Status FromGrpc(const grpc::Status& status);

// The same of a sequence's own error on a stream.
absl::Status FromStream(const google::rpc::Status& error);

// How long the server asks to wait before the call is sent again (RESOURCE_EXHAUSTED).
std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& status);
// The server's machine-readable reason, such as "queue_full" or "predicted".
std::optional<std::string> Reason(const absl::Status& status);

}  // namespace attend::client

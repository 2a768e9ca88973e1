// Why a request was not computed, carried in its status so that the wire and the metrics agree.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <chrono>
#include <optional>
#include <string>

namespace attend {

// Bounded: these are label values.
enum class RefusalReason {
  kQueueFull,  // RESOURCE_EXHAUSTED, a bound on queued requests, cost or bytes; has RetryAfter
  kTooLarge,   // INVALID_ARGUMENT, more than this server or model ever takes
  kExpired,    // DEADLINE_EXCEEDED, passed before or in the queue
  kPredicted,  // DEADLINE_EXCEEDED, can't be met any more
  kCancelled,  // CANCELLED, the caller is gone
  kDraining,   // UNAVAILABLE
};

// "queue_full", "too_large", "expired", "predicted", "cancelled", "draining"
absl::string_view RefusalName(RefusalReason reason);

// The status of the reason's code with `message`; `retry_after` for kQueueFull.
absl::Status Refuse(RefusalReason reason, absl::string_view message,
                    std::optional<std::chrono::milliseconds> retry_after = std::nullopt);

// What Refuse put in, or nothing for any other status.
std::optional<RefusalReason> ReasonOf(const absl::Status& status);
std::optional<std::chrono::milliseconds> RetryAfterOf(const absl::Status& status);

}  // namespace attend

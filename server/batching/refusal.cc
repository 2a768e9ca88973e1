#include "server/batching/refusal.h"

#include <absl/strings/cord.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <array>

namespace attend {
namespace {

constexpr char kReasonPayload[] = "attend/refusal-reason";
constexpr char kRetryAfterPayload[] = "attend/retry-after-ms";

struct Row {
  RefusalReason reason;
  absl::StatusCode code;
  const char* name;
};

constexpr std::array<Row, 6> kRows = {{
    {RefusalReason::kQueueFull, absl::StatusCode::kResourceExhausted, "queue_full"},
    {RefusalReason::kTooLarge, absl::StatusCode::kInvalidArgument, "too_large"},
    {RefusalReason::kExpired, absl::StatusCode::kDeadlineExceeded, "expired"},
    {RefusalReason::kPredicted, absl::StatusCode::kDeadlineExceeded, "predicted"},
    {RefusalReason::kCancelled, absl::StatusCode::kCancelled, "cancelled"},
    {RefusalReason::kDraining, absl::StatusCode::kUnavailable, "draining"},
}};

}  // namespace

absl::string_view RefusalName(RefusalReason reason) {
  return kRows[static_cast<size_t>(reason)].name;
}

absl::Status Refuse(RefusalReason reason, absl::string_view message,
                    std::optional<std::chrono::milliseconds> retry_after) {
  const Row& row = kRows[static_cast<size_t>(reason)];
  absl::Status status(row.code, message);
  status.SetPayload(kReasonPayload, absl::Cord(row.name));
  if (retry_after) {
    status.SetPayload(kRetryAfterPayload, absl::Cord(absl::StrCat(retry_after->count())));
  }
  return status;
}

std::optional<RefusalReason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  if (!payload.has_value()) return std::nullopt;
  for (const Row& row : kRows) {
    if (*payload == row.name) return row.reason;
  }
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterPayload);
  int64_t ms = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &ms)) return std::nullopt;
  return std::chrono::milliseconds(ms);
}

}  // namespace attend

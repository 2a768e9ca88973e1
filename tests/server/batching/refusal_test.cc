#include "server/batching/refusal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace attend {
namespace {

using std::chrono::milliseconds;

struct Case {
  RefusalReason reason;
  absl::StatusCode code;
  const char* name;
};

class Refusals : public ::testing::TestWithParam<Case> {};

TEST_P(Refusals, CarryTheirCodeReasonAndMessage) {
  const absl::Status status = Refuse(GetParam().reason, "why");
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_EQ(std::string(status.message()), "why");
  EXPECT_EQ(ReasonOf(status), GetParam().reason);
  EXPECT_EQ(std::string(RefusalName(GetParam().reason)), GetParam().name);
  EXPECT_EQ(RetryAfterOf(status), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Refusal, Refusals,
    ::testing::Values(
        Case{RefusalReason::kQueueFull, absl::StatusCode::kResourceExhausted, "queue_full"},
        Case{RefusalReason::kTooLarge, absl::StatusCode::kInvalidArgument, "too_large"},
        Case{RefusalReason::kExpired, absl::StatusCode::kDeadlineExceeded, "expired"},
        Case{RefusalReason::kPredicted, absl::StatusCode::kDeadlineExceeded, "predicted"},
        Case{RefusalReason::kCancelled, absl::StatusCode::kCancelled, "cancelled"},
        Case{RefusalReason::kDraining, absl::StatusCode::kUnavailable, "draining"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Refusal, CarriesWhenToTryAgain) {
  EXPECT_EQ(RetryAfterOf(Refuse(RefusalReason::kQueueFull, "full", milliseconds(1250))),
            milliseconds(1250));
}

TEST(Refusal, OtherStatusesHaveNoReason) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ReasonOf(absl::ResourceExhaustedError("memory")), std::nullopt);
  EXPECT_EQ(RetryAfterOf(absl::UnavailableError("")), std::nullopt);
}

}  // namespace
}  // namespace attend

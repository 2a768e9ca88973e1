#include "server/rpc/status_codec.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "server/batching/refusal.h"
#include "server/rpc/invalid_field.h"

namespace attend {
namespace {

template <typename Detail>
Detail DetailOf(const grpc::Status& status) {
  google::rpc::Status rpc;
  Detail detail;
  if (!rpc.ParseFromString(status.error_details())) return detail;
  for (const auto& any : rpc.details()) any.UnpackTo(&detail);
  return detail;
}

TEST(StatusCodec, AFullQueueTellsWhenToRetryInEveryWayThatClientsRead) {
  const absl::Status refusal =
      Refuse(RefusalReason::kQueueFull, "full", std::chrono::milliseconds(2500));
  const grpc::Status status = ToGrpcStatus(refusal);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "full");
  const auto retry = DetailOf<google::rpc::RetryInfo>(status);
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(status).reason(), "queue_full");
  EXPECT_EQ(RetryPushback(refusal), "2500");
}

TEST(StatusCodec, AWrongFieldIsAFieldViolation) {
  const absl::Status refusal = InvalidField("items", "N = ", 0);
  EXPECT_EQ(RetryPushback(refusal), std::nullopt);
  const auto bad = DetailOf<google::rpc::BadRequest>(ToGrpcStatus(refusal));
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "items");
  EXPECT_EQ(bad.field_violations(0).description(), "items: N = 0");
}

TEST(StatusCodec, AStatusWithoutMoreHasNoDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::NotFoundError("x")).error_details().empty());
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace attend

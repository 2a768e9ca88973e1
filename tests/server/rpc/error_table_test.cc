// One test a row of the table of error codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/running_server.h"

namespace attend {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Waits, without asking for time, until `count` requests are in the queue.
void AwaitQueued(Batcher& batcher, int64_t count) {
  while (batcher.queue().requests < count) std::this_thread::yield();
}

void ExpectError(const grpc::Status& status, grpc::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(text));
}

grpc::Status Ask(RunningServer& server, const v1::AttendRequest& request) {
  PendingCall call(server, request);
  return call.status();
}

void ExpectInvalid(RunningServer& server, const v1::AttendRequest& request,
                   const std::string& text) {
  ExpectError(Ask(server, request), grpc::StatusCode::INVALID_ARGUMENT, text);
}

v1::Tensor Bools(std::vector<int64_t> shape, const std::string& data) {
  v1::Tensor tensor;
  tensor.set_dtype("BOOL");
  for (const int64_t size : shape) tensor.add_shape(size);
  tensor.set_data(data);
  return tensor;
}

TEST(ErrorTable, AWrongShapeNamesTheFieldAndBothShapes) {
  RunningServer server;
  ExpectInvalid(server, MakeQuestion(3, 5), "items: shape [3, 5], but the model takes");
  v1::AttendRequest request = MakeQuestion(3);
  request.clear_items();
  ExpectInvalid(server, request, "items: missing");
  request = MakeQuestion(2);
  *request.mutable_key_mask() = Bools({3}, std::string(3, 1));
  ExpectInvalid(server, request, "key_mask: shape [3], expected [N] = [2]");
  request = MakeQuestion(2);
  *request.mutable_attention_mask() = Bools({4}, std::string(4, 1));
  ExpectInvalid(server, request, "attention_mask: shape [4], expected [N, N] = [2, 2]");
  request = MakeQuestion(2);
  *request.mutable_attention_bias() = MakeQuestion(2, 1).items();
  ExpectInvalid(server, request, "attention_bias: shape [2, 1], expected [N, N] = [2, 2]");
}

TEST(ErrorTable, AWrongElementTypeNamesFieldAndChoice) {
  RunningServer server;
  v1::AttendRequest request = MakeQuestion(2);
  *request.mutable_items() = Bools({2, 4}, std::string(8, 1));
  ExpectInvalid(server, request, "items: element type BOOL, expected F32, F16, BF16 or F64");
  request = MakeQuestion(2);
  request.mutable_key_mask()->add_shape(2);
  request.mutable_key_mask()->set_data(std::string(8, '\0'));
  ExpectInvalid(server, request, "key_mask: element type F32, expected BOOL");
  request = MakeQuestion(2);
  *request.mutable_attention_mask() = Bools({2, 2}, std::string("\1\0\2\1", 4));
  ExpectInvalid(server, request, "attention_mask: element 2 is 2; a BOOL is one byte, 0 or 1");
}

TEST(ErrorTable, NoItemsAndTooManyAreRefused) {
  RunningServer server;
  ExpectInvalid(server, MakeQuestion(0), "N = 0");
  ExpectInvalid(server, MakeQuestion(65), "N = 65, the model's limit is 64");
  EXPECT_TRUE(Ask(server, MakeQuestion(64)).ok());
}

TEST(ErrorTable, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  RunningServer server;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    v1::AttendRequest request = MakeQuestion(3);
    request.mutable_items()->set_values(6, bad);
    ExpectInvalid(server, request, "items");
  }
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    v1::AttendRequest request = MakeQuestion(2);
    *request.mutable_attention_bias() = MakeQuestion(2, 2).items();
    request.mutable_attention_bias()->set_values(1, bad);
    ExpectInvalid(server, request, "attention_bias");
  }
}

TEST(ErrorTable, NumbersThatLeaveFloat32FailTheirOwnRequestAlone) {
  RunningServer server;
  v1::AttendRequest huge = MakeQuestion(3);
  for (float& value : *huge.mutable_items()->mutable_values()) value = 3e38f;
  server.model().gate.Close();
  PendingCall first(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall overflowing(server, huge);
  PendingCall fellow(server, MakeQuestion(3));
  AwaitQueued(server.batcher(), 2);
  server.model().gate.Open();
  EXPECT_EQ(overflowing.status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(overflowing.status().error_message(), HasSubstr("item"));
  EXPECT_TRUE(fellow.status().ok());
  EXPECT_EQ(fellow.response().timing().batch_requests(), 2u);
}

TEST(ErrorTable, ARequestOrAnAnswerAboveTheMessageLimitIsInvalidBeforeAnyCompute) {
  RunningServer::Options options;
  options.max_message_bytes = 20000;
  options.model.max_sequence_length = 100000;
  RunningServer server(options);
  ExpectInvalid(server, MakeQuestion(2000), "the limit is 20000 (--max-message-bytes)");
  v1::AttendRequest request = MakeQuestion(60);
  EXPECT_TRUE(Ask(server, request).ok());
  const int64_t entered = server.model().gate.entered();
  request.add_want(v1::WEIGHTS);
  ExpectInvalid(server, request, "the answer would have 7200 elements of F32 for 60 items");
  request.set_answer_dtype("F16");
  EXPECT_EQ(server.model().gate.entered(), entered);
  EXPECT_TRUE(Ask(server, request).ok());
}

TEST(ErrorTable, AMessageThatIsNoMessageIsInvalid) {
  RunningServer server;
  grpc::Status status;
  CallRaw(server.channel(), "/attend.v1.Attention/Attend", "\x0a\x7fgarbage", &status);
  ExpectError(status, grpc::StatusCode::INVALID_ARGUMENT, "not a valid protobuf message");
}

TEST(ErrorTable, AnUnknownModelOrVersionIsNotFound) {
  RunningServer server;
  ExpectError(Ask(server, MakeQuestion(1, 4, 1, "nosuch")), grpc::StatusCode::NOT_FOUND, "nosuch");
  v1::AttendRequest request = MakeQuestion(1);
  request.set_version("2");
  ExpectError(Ask(server, request), grpc::StatusCode::NOT_FOUND, "2");
  request.set_version("latest");
  ExpectInvalid(server, request, "latest");
  EXPECT_EQ(server.exchanges().records()[0].facts.model, "");
}

TEST(ErrorTable, AFullQueueIsResourceExhaustedAndSaysWhenToRetry) {
  RunningServer::Options options;
  options.batcher.max_queued_requests = 1;
  RunningServer server(options);
  server.model().gate.Close();
  PendingCall running(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall waiting(server, MakeQuestion(1));
  AwaitQueued(server.batcher(), 1);
  PendingCall refused(server, MakeQuestion(1));
  EXPECT_EQ(refused.status().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(refused.status().error_details()));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_GT(retry.retry_delay().seconds() + retry.retry_delay().nanos(), 0);
  EXPECT_EQ(refused.context().GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  server.model().gate.Open();
  EXPECT_TRUE(running.status().ok());
  EXPECT_TRUE(waiting.status().ok());
}

TEST(ErrorTable, ADeadlineThatPassesInTheQueueIsNotComputed) {
  RunningServer server;
  server.model().gate.Close();
  PendingCall running(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall late(server, MakeQuestion(1), std::chrono::milliseconds(100));
  EXPECT_EQ(late.status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  while (server.exchanges().records().empty()) std::this_thread::yield();
  EXPECT_EQ(server.model().gate.entered(), 1);
  server.model().gate.Open();
  EXPECT_TRUE(running.status().ok());
}

// Serves "slow", each of whose requests is expected to take a worker ten seconds.
void ServeSlow(RunningServer& server) {
  server.registry().Put(std::make_shared<ServedModel>(ServedModel{
      "slow", 1, MakeSmallModel(), {}, std::make_shared<CostModel>(CostCurve{10, 0, 0})}));
}

void ExpectPredicted(const grpc::Status& status, const std::string& text) {
  ExpectError(status, grpc::StatusCode::DEADLINE_EXCEEDED, text);
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "predicted");
}

TEST(ErrorTable, ADeadlineThatComputingCannotMeetIsPredictedWhileOthersAreComputed) {
  RunningServer server;
  ServeSlow(server);
  server.model().gate.Close();
  PendingCall running(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall late(server, MakeQuestion(1, 4, 1, "slow"), std::chrono::seconds(5));
  ExpectPredicted(late.status(), "computing takes longer than what is left");
  server.model().gate.Open();
  EXPECT_TRUE(running.status().ok());
}

TEST(ErrorTable, ADeadlineThatTheQueueCannotMeetIsPredicted) {
  RunningServer::Options options;
  options.batcher.max_queued_cost = std::chrono::hours(1);
  RunningServer server(options);
  ServeSlow(server);
  server.model().gate.Close();
  PendingCall running(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall patient(server, MakeQuestion(1, 4, 1, "slow"));
  AwaitQueued(server.batcher(), 1);
  // Within ten seconds for itself, but not behind the other. Due after it: a deadline that is
  // nearer than a second would pass it.
  PendingCall late(server, MakeQuestion(1, 4, 1, "slow"), std::chrono::seconds(15));
  ExpectPredicted(late.status(), "what waits already takes longer");
  server.model().gate.Open();
  EXPECT_TRUE(patient.status().ok());
  EXPECT_TRUE(running.status().ok());
}

TEST(ErrorTable, AnIdleServerPredictsNothing) {
  RunningServer server;
  ServeSlow(server);
  PendingCall hopeless(server, MakeQuestion(1, 4, 1, "slow"), std::chrono::seconds(5));
  EXPECT_TRUE(hopeless.status().ok()) << hopeless.status().error_message();
}

TEST(ErrorTable, ACallerThatLeftIsNotComputed) {
  RunningServer server;
  server.model().gate.Close();
  PendingCall running(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  PendingCall leaving(server, MakeQuestion(1));
  AwaitQueued(server.batcher(), 1);
  leaving.Cancel();
  EXPECT_EQ(leaving.status().error_code(), grpc::StatusCode::CANCELLED);
  while (server.exchanges().records().empty()) std::this_thread::yield();
  EXPECT_EQ(server.exchanges().records()[0].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(server.model().gate.entered(), 1);
  server.model().gate.Open();
  EXPECT_TRUE(running.status().ok());
}

TEST(ErrorTable, ADrainingServerIsUnavailableForTheNewAndAnswersTheOld) {
  RunningServer server;
  server.model().gate.Close();
  PendingCall accepted(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  server.batcher().Drain();
  ExpectError(Ask(server, MakeQuestion(1)), grpc::StatusCode::UNAVAILABLE, "");
  server.model().gate.Open();
  EXPECT_TRUE(accepted.status().ok());
}

TEST(ErrorTable, AFaultOfOursIsInternalWithTheIdThatIsLoggedAndWithoutItsText) {
  RunningServer server;
  server.model().failure = absl::InternalError("primitive 17 broke");
  v1::AttendRequest request = MakeQuestion(1);
  request.set_request_id("my-id");
  const grpc::Status status = Ask(server, request);
  ExpectError(status, grpc::StatusCode::INTERNAL, "my-id");
  EXPECT_THAT(status.error_message(), Not(HasSubstr("primitive")));
  const auto record = server.exchanges().records().back();
  EXPECT_EQ(record.facts.request_id, "my-id");
  EXPECT_THAT(record.status.message(), HasSubstr("primitive 17 broke"));
}

}  // namespace
}  // namespace attend

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/server/rpc/running_server.h"

namespace attend {
namespace {

using ::testing::HasSubstr;
using Stream = grpc::ClientReaderWriter<v1::AttendRequest, v1::AttendResponse>;

v1::AttendRequest Numbered(int id, int64_t n) {
  v1::AttendRequest request = MakeQuestion(n, 4, id);
  request.set_request_id(std::to_string(id));
  return request;
}

TEST(AttendStream, EveryMessageIsAnsweredByItsIdWithTheBitsOfAUnaryCall) {
  RunningServer server;
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = server.stub().AttendStream(&context);
  // More than may be unanswered at once: the server must go on reading as it answers.
  constexpr int kCount = 3 * 64;
  std::thread writer([&] {
    for (int i = 0; i < kCount; ++i) stream->Write(Numbered(i, 1 + i % 7));
    stream->WritesDone();
  });
  std::map<std::string, std::string> values;
  for (v1::AttendResponse response; stream->Read(&response);) {
    EXPECT_FALSE(response.has_error()) << response.error().message();
    values[response.request_id()] = response.values().data();
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(values.size(), size_t{kCount});
  for (const int i : {0, 17, kCount - 1}) {
    PendingCall call(server, Numbered(i, 1 + i % 7));
    EXPECT_EQ(call.response().values().data(), values[std::to_string(i)]);
  }
}

TEST(AttendStream, AFailedMessageDoesNotEndTheStream) {
  RunningServer server;
  grpc::ClientContext context;
  const auto stream = server.stub().AttendStream(&context);
  stream->Write(Numbered(1, 0));
  v1::AttendResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "1");
  EXPECT_EQ(response.error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(response.error().message(), HasSubstr("N = 0"));
  EXPECT_FALSE(response.has_values());
  stream->Write(Numbered(2, 3));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "2");
  EXPECT_FALSE(response.has_error());
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(AttendStream, AnswersKeepTheRequestsOrderOnDemand) {
  RunningServer server;
  grpc::ClientContext context;
  context.AddMetadata("attend-order", "request");
  const auto stream = server.stub().AttendStream(&context);
  server.model().gate.Close();
  stream->Write(Numbered(0, 3));
  server.model().gate.AwaitEntered(1);
  // Refused at once, long before the one that is held.
  stream->Write(Numbered(1, 0));
  stream->WritesDone();
  while (server.exchanges().records().empty()) std::this_thread::yield();
  server.model().gate.Open();
  v1::AttendResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "0");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "1");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(AttendStream, WithoutThatAnswersComeAsTheyAreReady) {
  RunningServer server;
  grpc::ClientContext context;
  const auto stream = server.stub().AttendStream(&context);
  server.model().gate.Close();
  stream->Write(Numbered(0, 3));
  server.model().gate.AwaitEntered(1);
  stream->Write(Numbered(1, 0));
  v1::AttendResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "1");
  server.model().gate.Open();
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "0");
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(AttendStream, ACancelLeavesNothingComputed) {
  RunningServer server;
  server.model().gate.Close();
  PendingCall held(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  grpc::ClientContext context;
  const auto stream = server.stub().AttendStream(&context);
  for (int i = 0; i < 5; ++i) stream->Write(Numbered(i, 2));
  while (server.batcher().queue().requests < 5) std::this_thread::yield();
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (server.batcher().queue().requests > 0) std::this_thread::yield();
  EXPECT_EQ(server.model().gate.entered(), 1);
  server.model().gate.Open();
  EXPECT_TRUE(held.status().ok());
}

// Unread answers: the server holds no more of them than its bound, then reads no further.
TEST(AttendStream, ACallerWhoDoesNotReadIsNotReadFrom) {
  RunningServer server;
  server.model().gate.Close();
  grpc::ClientContext context;
  const auto stream = server.stub().AttendStream(&context);
  stream->Write(Numbered(0, 1));
  server.model().gate.AwaitEntered(1);  // or the worker might take several at once
  for (int i = 1; i < 100; ++i) stream->Write(Numbered(i, 1));
  stream->WritesDone();
  while (server.batcher().queue().requests < 63) std::this_thread::yield();
  PendingCall later(server, MakeQuestion(1));
  while (server.batcher().queue().requests < 64) std::this_thread::yield();
  EXPECT_EQ(server.batcher().queue().requests, 64);
  server.model().gate.Open();
  int answers = 0;
  for (v1::AttendResponse response; stream->Read(&response);) ++answers;
  EXPECT_EQ(answers, 100);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(later.status().ok());
}

TEST(AttendStream, ADrainAnswersWhatWasReadAndEndsTheStream) {
  RunningServer server;
  grpc::ClientContext context;
  const auto stream = server.stub().AttendStream(&context);
  server.model().gate.Close();
  stream->Write(Numbered(0, 3));
  server.model().gate.AwaitEntered(1);
  server.grpc().BeginDrain();
  server.batcher().Drain();
  server.model().gate.Open();
  v1::AttendResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), "0");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server.grpc().WaitCallsOver(Clock::now() + std::chrono::minutes(1)));
}

}  // namespace
}  // namespace attend

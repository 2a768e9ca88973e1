#include "client/attend_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fake_server.h"

namespace attend::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<AttendClient> Connect(const ChannelOptions& options) {
  auto client = AttendClient::Create(options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

std::unique_ptr<AttendClient> Connect(const FakeServer& server) {
  return Connect({.targets = {server.target()}});
}

v1::AttendRequest RequestFor(const std::string& model) {
  v1::AttendRequest request;
  request.set_model(model);
  request.add_want(v1::VALUES);
  SetFloats({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}, request.mutable_items());
  return request;
}

TEST(AttendClient, AnAnswersFloatsAreThoseSent) {
  FakeServer server;
  auto client = Connect(server);
  const auto answer = client->Attend(RequestFor("fake"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->version(), "7");
  const auto values = Floats(answer->values());
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(AttendClient, AsynchronousCallsAnswerEachOnce) {
  FakeServer server;
  std::atomic<int> good = 0, not_found = 0;
  {
    auto client = Connect(server);
    for (int i = 0; i < 20; ++i) {
      client->AttendAsync(RequestFor(i % 2 ? "fake" : "other"), {},
                          [&](absl::StatusOr<v1::AttendResponse> answer) {
                            (answer.ok() ? good : not_found)++;
                            EXPECT_TRUE(answer.ok() || absl::IsNotFound(answer.status()));
                          });
    }
  }
  EXPECT_EQ(good, 10);
  EXPECT_EQ(not_found, 10);
}

TEST(AttendClient, AnErrorKeepsCodeMessageReasonAndRetryAfter) {
  FakeServer server;
  server.FailNext(QueueFull(), 1);
  const auto answer = Connect(server)->Attend(RequestFor("fake"));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answer.status().message(), "queue full");
  EXPECT_EQ(Reason(answer.status()), "queue_full");
  EXPECT_EQ(RetryAfter(answer.status()), std::chrono::milliseconds(1500));
}

TEST(AttendClient, AnErrorWithoutDetailsHasNeitherReasonNorRetryAfter) {
  FakeServer server;
  const auto answer = Connect(server)->Attend(RequestFor("other"));
  EXPECT_EQ(answer.status(), absl::NotFoundError("no model 'other', served: fake"));
  EXPECT_EQ(Reason(answer.status()), std::nullopt);
  EXPECT_EQ(RetryAfter(answer.status()), std::nullopt);
  EXPECT_EQ(Reason(FromGrpc({grpc::StatusCode::INTERNAL, "m", "no protobuf"})), std::nullopt);
}

TEST(AttendClient, ModelsAreListedAndDescribed) {
  FakeServer server;
  auto client = Connect(server);
  const auto models = client->ListModels();
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ(models->front().name(), "fake");
  EXPECT_EQ(client->GetModel("fake")->d_f(), 3);
  EXPECT_TRUE(absl::IsNotFound(client->GetModel("other").status()));
}

TEST(AttendClient, HealthTellsServingFromNotServingFromUnknown) {
  FakeServer server;
  auto client = Connect({.targets = {server.target()}, .leave_out_unhealthy = false});
  EXPECT_TRUE(client->Health().ok());
  EXPECT_TRUE(absl::IsNotFound(client->Health("no.such.Service")));
  server.SetServing(false);
  EXPECT_EQ(client->Health(), absl::UnavailableError("NOT_SERVING"));
}

TEST(AttendClient, UnavailableIsSentAgainUntilItIsTaken) {
  FakeServer server;
  server.FailNext({grpc::StatusCode::UNAVAILABLE, "draining"}, 2);
  const auto answer = Connect(server)->Attend(RequestFor("fake"));
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(AttendClient, AttemptsAreBoundedAndOtherCodesAreNotSentAgain) {
  FakeServer server;
  server.FailNext({grpc::StatusCode::UNAVAILABLE, "draining"}, 100);
  EXPECT_TRUE(absl::IsUnavailable(Connect(server)->Attend(RequestFor("fake")).status()));
  EXPECT_EQ(server.requests().size(), 4u);
  server.FailNext({grpc::StatusCode::INTERNAL, "broken"}, 100);
  EXPECT_TRUE(absl::IsInternal(Connect(server)->Attend(RequestFor("fake")).status()));
  EXPECT_EQ(server.requests().size(), 5u);
}

TEST(AttendClient, ABodyBeyondGrpcsOwnRetryBufferIsSentAgainToo) {
  FakeServer server;
  server.FailNext({grpc::StatusCode::UNAVAILABLE, "draining"}, 1);
  v1::AttendRequest request;
  request.set_model("fake");
  SetFloats({100'000, 3}, std::vector<float>(300'000, 1.f), request.mutable_items());
  EXPECT_TRUE(Connect(server)->Attend(request).ok());
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(AttendClient, SeveralTargetsShareTheCallsAndOneMayBeDown) {
  FakeServer first, second;
  auto client = Connect({.targets = {first.target(), second.target(), "localhost:1"}});
  for (int i = 0; i < 20; ++i) {
    const auto answer = client->Attend(RequestFor("fake"), {.wait_for_ready = true});
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
  EXPECT_EQ(first.requests().size() + second.requests().size(), 20u);
}

TEST(AttendClient, AServerThatSaysItDoesNotServeGetsNoCalls) {
  FakeServer serving, draining;
  draining.SetServing(false);
  auto client = Connect({.targets = {serving.target(), draining.target()}});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client->Attend(RequestFor("fake")).ok());
  EXPECT_EQ(serving.requests().size(), 10u);
  EXPECT_TRUE(draining.requests().empty());
}

TEST(AttendClient, NobodyThereIsUnavailable) {
  auto client = Connect({.targets = {"localhost:1"}});
  EXPECT_TRUE(absl::IsUnavailable(client->Attend(RequestFor("fake")).status()));
}

TEST(AttendClient, APassedDeadlineIsDeadlineExceeded) {
  FakeServer server;
  const auto answer =
      Connect(server)->Attend(RequestFor("fake"), {.deadline = std::chrono::milliseconds(-1)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status()));
}

TEST(Channel, WrongOptionsAreNamed) {
  const auto message = [](const ChannelOptions& options) {
    const auto channel = MakeChannel(options);
    EXPECT_FALSE(channel.ok());
    return std::string(channel.status().message());
  };
  EXPECT_THAT(message({.targets = {}}), HasSubstr("no target"));
  EXPECT_THAT(message({.targets = {""}}), HasSubstr("an empty target"));
  EXPECT_THAT(message({.targets = {"localhost:1", "nohost"}}), HasSubstr("'nohost'"));
  EXPECT_THAT(message({.targets = {"localhost:1", "no.such.host.invalid:1"}}),
              HasSubstr("no.such.host.invalid"));
  EXPECT_THAT(message({.tls = TlsOptions{.ca_file = "/no/ca.pem"}}), HasSubstr("/no/ca.pem"));
  EXPECT_THAT(message({.tls = TlsOptions{.key_file = "key.pem"}}), HasSubstr("only one is given"));
}

TEST(Tensors, ATensorThatBreaksTheContractIsInternal) {
  v1::Tensor tensor;
  SetFloats({2}, std::vector<float>{1, 2}, &tensor);
  tensor.set_shape(0, 3);
  EXPECT_TRUE(absl::IsInternal(Floats(tensor).status()));
  tensor.set_shape(0, -1);
  EXPECT_TRUE(absl::IsInternal(Floats(tensor).status()));
  tensor.set_shape(0, 2);
  tensor.set_dtype("F16");
  EXPECT_THAT(std::string(Floats(tensor).status().message()), HasSubstr("F16"));
  tensor.set_dtype("");
  tensor.mutable_data()->push_back('x');
  EXPECT_TRUE(absl::IsInternal(Floats(tensor).status()));
}

TEST(Tensors, NumbersInValuesAreReadAsWell) {
  v1::Tensor tensor;
  tensor.add_shape(2);
  tensor.add_values(1.5f);
  tensor.add_values(2.5f);
  EXPECT_THAT(*Floats(tensor), ElementsAre(1.5f, 2.5f));
}

TEST(Tensors, MasksAreBytes) {
  v1::Tensor tensor;
  SetMask({3}, std::vector<uint8_t>{1, 0, 1}, &tensor);
  EXPECT_EQ(tensor.dtype(), "BOOL");
  EXPECT_EQ(tensor.data(), std::string("\1\0\1", 3));
}

}  // namespace
}  // namespace attend::client

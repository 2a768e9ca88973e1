// Many sequences on one stream, and streams that break.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/attend_client.h"
#include "fake_server.h"

namespace attend::client {
namespace {

using ::testing::HasSubstr;

std::vector<v1::AttendRequest> Requests(int count) {
  std::vector<v1::AttendRequest> requests(count);
  for (int i = 0; i < count; ++i) {
    requests[i].set_model("fake");
    requests[i].add_want(v1::VALUES);
    SetFloats({1, 3}, std::vector<float>(3, static_cast<float>(i)), requests[i].mutable_items());
  }
  return requests;
}

std::unique_ptr<AttendClient> Connect(const FakeServer& server) {
  return *AttendClient::Create(
      {.targets = {server.target()}, .retry = {.first_backoff = std::chrono::milliseconds(1)}});
}

// Each request's answers: how many, and the last.
struct Collected {
  std::map<size_t, int> times;
  std::map<size_t, absl::StatusOr<v1::AttendResponse>> answers;

  AttendClient::StreamDone Done() {
    return [this](size_t index, absl::StatusOr<v1::AttendResponse> answer) {
      ++times[index];
      answers.insert_or_assign(index, std::move(answer));
    };
  }
  void ExpectEachOnceWithItsOwnValues(size_t count) {
    ASSERT_EQ(times.size(), count);
    for (const auto& [index, n] : times) {
      EXPECT_EQ(n, 1) << index;
      ASSERT_TRUE(answers.at(index).ok()) << answers.at(index).status();
      EXPECT_EQ(Floats(answers.at(index)->values())->front(), static_cast<float>(index));
    }
  }
};

TEST(AttendMany, EveryRequestIsAnsweredOnce) {
  FakeServer server;
  Collected collected;
  EXPECT_TRUE(Connect(server)->AttendMany(Requests(50), {}, collected.Done()).ok());
  collected.ExpectEachOnceWithItsOwnValues(50);
}

TEST(AttendMany, ABrokenStreamSendsAgainWhatHasNoAnswerAndNothingElse) {
  FakeServer server;
  server.BreakNextStreamAfter(20);
  Collected collected;
  EXPECT_TRUE(Connect(server)->AttendMany(Requests(50), {}, collected.Done()).ok());
  collected.ExpectEachOnceWithItsOwnValues(50);
  EXPECT_EQ(server.requests().size(), 50u);
}

TEST(AttendMany, OneSequencesErrorLeavesTheOthersAlone) {
  FakeServer server;
  server.FailNext(QueueFull(), 1);
  Collected collected;
  EXPECT_TRUE(Connect(server)->AttendMany(Requests(3), {}, collected.Done()).ok());
  ASSERT_EQ(collected.answers.size(), 3u);
  const absl::Status refused = collected.answers.at(0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(refused), "queue_full");
  EXPECT_EQ(RetryAfter(refused), std::chrono::milliseconds(1500));
  EXPECT_TRUE(collected.answers.at(1).ok());
  EXPECT_TRUE(collected.answers.at(2).ok());
}

TEST(AttendMany, OwnIdsAreKeptAndMustDiffer) {
  FakeServer server;
  std::vector<v1::AttendRequest> requests = Requests(2);
  requests[0].set_request_id("a");
  requests[1].set_request_id("b");
  Collected collected;
  EXPECT_TRUE(Connect(server)->AttendMany(requests, {}, collected.Done()).ok());
  EXPECT_EQ(collected.answers.at(1)->request_id(), "b");
  requests[1].set_request_id("a");
  const absl::Status twice = Connect(server)->AttendMany(requests, {}, collected.Done());
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("'a'"));
}

TEST(AttendMany, NobodyThereIsUnavailableAfterItsAttempts) {
  const auto client = *AttendClient::Create(
      {.targets = {"localhost:1"}, .retry = {.first_backoff = std::chrono::milliseconds(1)}});
  Collected collected;
  EXPECT_TRUE(absl::IsUnavailable(client->AttendMany(Requests(2), {}, collected.Done())));
  EXPECT_TRUE(collected.answers.empty());
}

TEST(AttendMany, NothingToSendIsDone) {
  FakeServer server;
  EXPECT_TRUE(Connect(server)->AttendMany({}, {}, Collected().Done()).ok());
}

}  // namespace
}  // namespace attend::client

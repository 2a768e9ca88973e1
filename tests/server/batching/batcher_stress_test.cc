// Threads that enqueue, cancel, let deadlines pass and drain, all at once. Run it under
// ThreadSanitizer: what it asserts itself is that every request ends once and that nothing is held.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "server/batching/batcher.h"
#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

constexpr int kThreads = 4;
constexpr int kRequestsEach = 3000;

struct Tally {
  std::atomic<int> ended{0}, twice{0}, answered{0}, wrong{0};
};

class Caller {
 public:
  Caller(Batcher& batcher, FakeClock& clock, Tally& tally, unsigned seed)
      : batcher_(batcher), clock_(clock), tally_(tally), random_(seed) {}

  void Run(const std::vector<Served>& models) {
    for (int i = 0; i < kRequestsEach; ++i) {
      const RequestHandle handle = batcher_.Enqueue(Make(models[random_() % models.size()]));
      if (random_() % 4 == 0) batcher_.Cancel(handle);
      if (random_() % 64 == 0) {
        clock_.Advance(std::chrono::microseconds(random_() % 500));
        batcher_.Tick();
      }
    }
  }

 private:
  PendingRequest Make(const Served& served) {
    const float value = static_cast<float>(random_() % 1000);
    PendingRequest request = MakeRequest(served, 1 + random_() % 8, value, ignored_, clock_.now());
    auto held = batcher_.Admit(64);
    if (held.ok()) {
      request.storage =
          std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
              request.storage, *held);
    }
    if (random_() % 3 == 0) {
      request.deadline = clock_.now() + std::chrono::microseconds(random_() % 2000);
    }
    request.priority = random_() % 4;
    request.done = [this, value, ended = std::make_shared<std::atomic<bool>>(false)](
                       const absl::StatusOr<Answer>& answer) {
      if (ended->exchange(true)) ++tally_.twice;
      ++tally_.ended;
      if (!answer.ok()) return;
      ++tally_.answered;
      if (answer->output.values.data()[0] != 2 * value) ++tally_.wrong;
    };
    return request;
  }

  Batcher& batcher_;
  FakeClock& clock_;
  Tally& tally_;
  std::mt19937 random_;
  Fate ignored_;
};

class BatcherStress : public ::testing::TestWithParam<bool> {};

TEST_P(BatcherStress, EveryRequestEndsOnceWithItsOwnAnswer) {
  const bool abandon = GetParam();
  FakeClock clock;
  BatchObserver observer;
  Tally tally;
  std::deque<Caller> callers;  // outlive the batcher
  Batcher batcher({.threads = 3,
                   .max_batch_requests = 16,
                   .max_queue_delay = std::chrono::microseconds(abandon ? 0 : 50),
                   .max_queued_requests = 500,
                   .now = clock.source()},
                  &observer);
  const std::vector<Served> models = {ServeFake("a"), ServeFake("b"), ServeFake("b", 2)};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    callers.emplace_back(batcher, clock, tally, t);
    threads.emplace_back([&callers, &models, t] { callers[t].Run(models); });
  }
  if (abandon) {
    while (tally.ended < kThreads * kRequestsEach / 2) std::this_thread::yield();
    batcher.Drain();
    batcher.Abandon();
  }
  for (std::thread& thread : threads) thread.join();
  batcher.Drain();
  clock.Advance(std::chrono::seconds(1));
  batcher.Tick();
  EXPECT_TRUE(batcher.WaitDrained(Clock::time_point::max()));
  // An answer is on its way for a moment after its request has left.
  while (tally.ended < kThreads * kRequestsEach) std::this_thread::yield();
  EXPECT_EQ(tally.twice, 0);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_GT(tally.answered, 0);
  const QueueFacts facts = batcher.queue();
  EXPECT_EQ(facts.requests, 0);
  EXPECT_EQ(facts.cost.count(), 0);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAbandon, BatcherStress, ::testing::Bool());

}  // namespace
}  // namespace attend

#include "server/batching/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/batching/refusal.h"
#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::hours(1)};
constexpr Clock::time_point kDeadline = kStart + milliseconds(100);
constexpr Clock::time_point kLate = kStart + milliseconds(200);

// A job that is only told what to leave out.
class CancelLog : public Job {
 public:
  int64_t runnable() const override { return 0; }
  bool Claim(Tile*) override { return false; }
  void Run(const Tile&, Workspace&) override {}
  void Fail(const Tile&, const absl::Status&) override {}
  int64_t Finish(const Tile&) override { return 0; }
  bool exhausted() const override { return true; }
  void Cancel(int64_t b) override { cancelled.push_back(b); }
  std::vector<int64_t> cancelled;
};

QueueOptions Options() {
  QueueOptions options;
  options.limits = {.max_items = 100, .max_requests = 2, .max_cost = 10};
  options.max_queued_requests = 100;
  options.max_queued_cost = 100;
  options.virtual_time = [] { return 0.0; };
  options.held_bytes = [] { return int64_t{0}; };
  return options;
}

// Every actor's steps are atomic, since the queue has one lock: so all that threads could do to
// each other is in the order of the steps, and all orders are tried.
class World {
 public:
  // Request 1 has a deadline.
  void Add(int r) {
    PendingRequest request = MakeRequest(served_, 1, 1, fates_[r], kStart);
    if (r == 1) request.deadline = kDeadline;
    storage_[r] = std::make_shared<int>(r);
    request.storage = storage_[r];
    Orders orders;
    handles_[r] = queue_.Add(std::move(request), 0.001, kStart, orders);
    Execute(std::move(orders));
  }
  void Cancel(int r) {
    Orders orders;
    if (handles_[r] != 0) queue_.Cancel(handles_[r], kStart, orders);
    Execute(std::move(orders));
  }
  void Tick() {
    Orders orders;
    queue_.Tick(kLate, orders);
    Execute(std::move(orders));
  }
  void Drain() { queue_.Drain(); }
  void Abandon() {
    Orders orders;
    queue_.Abandon(kLate, orders);
    Execute(std::move(orders));
  }
  // A worker's next step: takes a batch, attaches it, finishes its sequences last to first.
  void Work() {
    Orders orders;
    if (!taken_) {
      taken_ = queue_.Take(kStart);
      attached_ = false;
      unfinished_ = taken_ ? static_cast<int64_t>(taken_->inputs.size()) : 0;
    } else if (!attached_) {
      job_ = std::make_shared<CancelLog>();
      queue_.Attach(*taken_->batch, job_, orders);
      attached_ = true;
    } else {
      queue_.Finish(*taken_->batch, --unfinished_, SequenceOutput(), kStart, orders);
      if (unfinished_ == 0) taken_.reset();
    }
    Execute(std::move(orders));
  }

  void CheckTheEnd() {
    // Enough to take, attach and finish three batches.
    for (int step = 0; step < 9; ++step) Work();
    EXPECT_TRUE(queue_.WaitEmpty(Clock::now()));
    const QueueFacts facts = queue_.facts();
    EXPECT_EQ(facts.requests, 0);
    EXPECT_EQ(facts.cost.count(), 0);
    EXPECT_FALSE(queue_.Wants(std::numeric_limits<double>::infinity()));
    for (int r = 0; r < kRequests; ++r) {
      if (handles_[r] == 0) continue;  // none of this test's
      EXPECT_EQ(fates_[r].times(), 1) << "request " << r;
      EXPECT_EQ(storage_[r].use_count(), 1) << "request " << r << " is still held";
    }
  }
  const Fate& fate(int r) const { return fates_[r]; }

 private:
  static constexpr int kRequests = 3;

  void Execute(Orders orders) {
    for (const Orders::Cancel& order : orders.cancel) order.job->Cancel(order.sequence);
    for (Outcome& outcome : orders.deliver) outcome.done(std::move(outcome.answer));
  }

  BatchObserver observer_;
  Served served_ = ServeFake("model");
  RequestQueue queue_{Options(), &observer_};
  std::array<Fate, kRequests> fates_;
  std::array<std::shared_ptr<int>, kRequests> storage_;
  std::array<uint64_t, kRequests> handles_{};
  std::optional<TakenBatch> taken_;
  std::shared_ptr<CancelLog> job_;
  bool attached_ = false;
  int64_t unfinished_ = 0;
};

using Actor = std::vector<std::function<void(World&)>>;

// Runs `check` on a world for every interleaving of the actors' steps; returns how many there are.
int64_t ForEveryInterleaving(const std::vector<Actor>& actors,
                             const std::function<void(World&)>& check) {
  std::vector<size_t> schedule;
  std::vector<size_t> done(actors.size(), 0);
  int64_t count = 0;
  size_t total = 0;
  for (const Actor& actor : actors) total += actor.size();
  const std::function<void()> extend = [&] {
    if (schedule.size() == total) {
      World world;
      std::vector<size_t> next(actors.size(), 0);
      for (const size_t a : schedule) actors[a][next[a]++](world);
      check(world);
      ++count;
      return;
    }
    for (size_t a = 0; a < actors.size() && !::testing::Test::HasFailure(); ++a) {
      if (done[a] == actors[a].size()) continue;
      ++done[a];
      schedule.push_back(a);
      extend();
      schedule.pop_back();
      --done[a];
    }
  };
  extend();
  return count;
}

Actor Caller(std::vector<int> requests) {
  Actor actor;
  for (const int r : requests) actor.push_back([r](World& world) { world.Add(r); });
  return actor;
}

Actor Worker(int steps) {
  return Actor(steps, [](World& world) { world.Work(); });
}

TEST(RequestQueue, EveryRequestEndsOnceHoweverCancelDeadlineAndWorkerInterleave) {
  const int64_t interleavings =
      ForEveryInterleaving({Caller({0, 1, 2}),
                            Worker(5),
                            {[](World& w) { w.Cancel(0); }, [](World& w) { w.Cancel(0); }},
                            {[](World& w) { w.Tick(); }}},
                           [](World& world) { world.CheckTheEnd(); });
  EXPECT_EQ(interleavings, 27720);  // 11! / (3! 5! 2! 1!)
}

TEST(RequestQueue, EveryRequestEndsOnceHoweverDrainAndAbandonInterleave) {
  const int64_t interleavings =
      ForEveryInterleaving({Caller({0, 1}),
                            Worker(4),
                            {[](World& w) { w.Cancel(1); }},
                            {[](World& w) { w.Tick(); }},
                            {[](World& w) { w.Drain(); }, [](World& w) { w.Abandon(); }}},
                           [](World& world) { world.CheckTheEnd(); });
  EXPECT_EQ(interleavings, 37800);  // 10! / (2! 4! 1! 1! 2!)
}

TEST(RequestQueue, TwoWorkersCannotTakeTheSameRequest) {
  BatchObserver observer;
  RequestQueue queue(Options(), &observer);
  const Served served = ServeFake("model");
  std::deque<Fate> fates(3);
  Orders orders;
  for (Fate& fate : fates)
    queue.Add(MakeRequest(served, 1, 1, fate, kStart), 0.001, kStart, orders);
  const auto first = queue.Take(kStart);
  const auto second = queue.Take(kStart);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->batch->handles.size(), 2u);
  EXPECT_EQ(second->batch->handles.size(), 1u);
  EXPECT_NE(first->batch->handles[1], second->batch->handles[0]);
  EXPECT_FALSE(queue.Take(kStart));
  for (const auto* taken : {&first, &second}) {
    for (size_t b = 0; b < (*taken)->batch->handles.size(); ++b) {
      queue.Finish(*(*taken)->batch, b, SequenceOutput(), kStart, orders);
    }
  }
  EXPECT_EQ(orders.deliver.size(), 3u);
}

TEST(RequestQueue, WhatEndsBetweenTakingAndAttachingIsLeftOutByTheJob) {
  BatchObserver observer;
  RequestQueue queue(Options(), &observer);
  const Served served = ServeFake("model");
  std::deque<Fate> fates(2);
  Orders orders;
  queue.Add(MakeRequest(served, 1, 1, fates[0], kStart), 0.001, kStart, orders);
  const uint64_t handle =
      queue.Add(MakeRequest(served, 1, 1, fates[1], kStart), 0.001, kStart, orders);
  const auto taken = queue.Take(kStart);
  queue.Cancel(handle, kStart, orders);
  EXPECT_EQ(orders.deliver.size(), 1u);
  EXPECT_TRUE(orders.cancel.empty());
  queue.Attach(*taken->batch, std::make_shared<CancelLog>(), orders);
  ASSERT_EQ(orders.cancel.size(), 1u);
  EXPECT_EQ(orders.cancel[0].sequence, 1);
  for (int64_t b : {0, 1}) queue.Finish(*taken->batch, b, SequenceOutput(), kStart, orders);
  EXPECT_EQ(orders.deliver.size(), 2u);
}

// One worker, a millisecond for each request.
class Deadlines : public ::testing::Test {
 protected:
  uint64_t Add(Clock::time_point deadline, double cost = 0.001) {
    PendingRequest request = MakeRequest(served_, 1, 1, fates_.emplace_back(), kStart);
    request.deadline = deadline;
    return queue_.Add(std::move(request), cost, kStart, orders_);
  }
  std::vector<RefusalReason> Reasons() const {
    std::vector<RefusalReason> reasons;
    for (const Outcome& outcome : orders_.deliver) {
      reasons.push_back(ReasonOf(outcome.answer.status()).value());
    }
    return reasons;
  }

  BatchObserver observer_;
  Served served_ = ServeFake("model");
  std::deque<Fate> fates_;
  RequestQueue queue_{Options(), &observer_};
  Orders orders_;
};

TEST_F(Deadlines, WhatCannotMeetItAnyMoreIsToldSoWhileTheServerIsBusy) {
  Add(Clock::time_point::max());
  const auto running = queue_.Take(kStart);
  Add(kDeadline, 0.030);
  EXPECT_EQ(queue_.next_look(), kDeadline - milliseconds(30));
  queue_.Tick(kDeadline - milliseconds(31), orders_);
  EXPECT_THAT(Reasons(), ::testing::IsEmpty());
  queue_.Tick(kDeadline - milliseconds(30), orders_);
  EXPECT_THAT(Reasons(), ::testing::ElementsAre(RefusalReason::kPredicted));
}

TEST_F(Deadlines, NothingIsPredictedOnAnIdleServer) {
  Add(kDeadline, 0.500);
  queue_.Tick(kDeadline - milliseconds(1), orders_);
  EXPECT_THAT(Reasons(), ::testing::IsEmpty());
  queue_.Tick(kDeadline, orders_);
  EXPECT_THAT(Reasons(), ::testing::ElementsAre(RefusalReason::kExpired));
}

TEST_F(Deadlines, ABacklogThatTakesLongerThanTheDeadlineIsPredictedAtOnce) {
  Add(Clock::time_point::max());
  const auto running = queue_.Take(kStart);
  // Costs are estimates: four fifths of what waits must be too much already.
  for (int i = 0; i < 60; ++i) Add(kDeadline, 0.002);
  EXPECT_THAT(Reasons(), ::testing::IsEmpty());
  for (int i = 0; i < 10; ++i) Add(kDeadline, 0.002);
  EXPECT_THAT(Reasons(), ::testing::Contains(RefusalReason::kPredicted).Times(8));
}

TEST_F(Deadlines, ARequestThatIsDueBeforeTheBacklogIsNotHeldAgainstIt) {
  Add(Clock::time_point::max());
  const auto running = queue_.Take(kStart);
  for (int i = 0; i < 70; ++i) Add(Clock::time_point::max(), 0.002);
  Add(kDeadline, 0.002);
  EXPECT_THAT(Reasons(), ::testing::IsEmpty());
}

// The bound on what waits, 100 s, holds by the clock where others use the workers' CPUs.
TEST_F(Deadlines, WhereComputingTakesTwiceAsLongByTheClockHalfAsMuchMayWait) {
  const auto fill = [&] {
    int accepted = 0;
    for (orders_.deliver.clear(); orders_.deliver.empty(); ++accepted) {
      Add(Clock::time_point::max(), 5);
    }
    return accepted - 1;
  };
  EXPECT_EQ(fill(), 20);
  const auto retry_after = *RetryAfterOf(orders_.deliver.front().answer.status());
  while (queue_.Take(kStart)) {
  }
  queue_.LearnStretch(100, 200);
  EXPECT_EQ(fill(), 10);
  EXPECT_GE(*RetryAfterOf(orders_.deliver.front().answer.status()), retry_after);
  queue_.LearnStretch(0, 1);      // nothing was computed: nothing is learned
  queue_.LearnStretch(100, 100);  // they have gone
  while (queue_.Take(kStart)) {
  }
  EXPECT_EQ(fill(), 20);
}

}  // namespace
}  // namespace attend

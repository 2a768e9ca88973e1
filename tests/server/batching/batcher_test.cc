#include "server/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Clock::time_point kNever = Clock::time_point::max();

class BatcherTest : public ::testing::Test {
 protected:
  // Without a worker to spare, what is enqueued while a tile is held waits.
  Batcher& Start(BatcherOptions options = {}) {
    options.threads = 1;
    options.now = clock_.source();
    batcher_.emplace(options, &observer_);
    return *batcher_;
  }
  PendingRequest Request(const Served& served, int64_t items, Fate& fate, float value = 1) {
    return MakeRequest(served, items, value, fate, clock_.now());
  }
  Fate& NewFate() { return fates_.emplace_back(); }
  std::vector<Fate*> NewFates(int count) {
    std::vector<Fate*> fates;
    for (int i = 0; i < count; ++i) fates.push_back(&NewFate());
    return fates;
  }
  // Keeps the worker busy with a request of another model, until Release.
  void Hold(Batcher& batcher) {
    blocker_.fake->gate.Close();
    batcher.Enqueue(Request(blocker_, 1, blocked_));
    blocker_.fake->gate.AwaitEntered(1);
  }
  void Release() { blocker_.fake->gate.Open(); }

  FakeClock clock_;
  RecordingObserver observer_;
  Served blocker_ = ServeFake("blocker");
  Served model_ = ServeFake("model");
  Fate blocked_;
  std::deque<Fate> fates_;  // outlive the batcher
  std::optional<Batcher> batcher_;
};

TEST_F(BatcherTest, ARequestGetsTheAnswerToItsOwnNumbers) {
  Batcher& batcher = Start();
  Fate& a = NewFate();
  Fate& b = NewFate();
  batcher.Enqueue(Request(model_, 3, a, 1.5));
  batcher.Enqueue(Request(model_, 4, b, 2.5));
  a.Await();
  b.Await();
  EXPECT_EQ(a.value(), 3);
  EXPECT_EQ(b.value(), 5);
}

TEST_F(BatcherTest, RequestsThatCameWhileWorkersWereBusyShareABatch) {
  Batcher& batcher = Start();
  Hold(batcher);
  const std::vector<Fate*> fates = NewFates(5);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 2, *fate));
  clock_.Advance(milliseconds(7));
  Release();
  for (Fate* fate : fates) {
    fate->Await();
    EXPECT_EQ(fate->timing().batch_requests, 5);
    EXPECT_EQ(fate->timing().batch_items, 10);
    EXPECT_EQ(fate->timing().queue, milliseconds(7));
    EXPECT_EQ(fate->timing().compute, milliseconds(0));
  }
  EXPECT_THAT(observer_.batches(), ElementsAre(1, 5));
}

TEST_F(BatcherTest, ComputeLastsFromTheBatchsStartToTheRequestsOwnLastTile) {
  Batcher& batcher = Start();
  Hold(batcher);
  model_.fake->on_tile = [&](const SequenceInput&) { clock_.Advance(milliseconds(3)); };
  Fate& first = NewFate();
  Fate& second = NewFate();
  batcher.Enqueue(Request(model_, 1, first));
  batcher.Enqueue(Request(model_, 1, second));
  Release();
  second.Await();
  EXPECT_EQ(first.timing().compute, milliseconds(3));
  EXPECT_EQ(second.timing().compute, milliseconds(6));
}

TEST_F(BatcherTest, ABatchThatFindsNoMemoryFailsAloneAndTheNextOneIsComputed) {
  Batcher& batcher = Start();
  Hold(batcher);
  model_.fake->on_forward = [&] {
    model_.fake->on_forward = nullptr;
    throw std::bad_alloc();
  };
  const std::vector<Fate*> fates = NewFates(2);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 1, *fate));
  Release();
  for (Fate* fate : fates) {
    fate->Await();
    EXPECT_EQ(fate->status().code(), absl::StatusCode::kResourceExhausted);
  }
  Fate& next = NewFate();
  batcher.Enqueue(Request(model_, 1, next));
  next.Await();
  EXPECT_TRUE(next.status().ok());
}

TEST_F(BatcherTest, WhatABatchsStartThrowsElseIsAnErrorOfOurs) {
  Batcher& batcher = Start();
  model_.fake->on_forward = [] { throw std::runtime_error("could not create a primitive"); };
  Fate& fate = NewFate();
  batcher.Enqueue(Request(model_, 1, fate));
  fate.Await();
  EXPECT_EQ(fate.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(fate.status().message()), HasSubstr("could not create a primitive"));
}

TEST_F(BatcherTest, ABatchCostsWhatItsTilesComputeNotWhatTheClockSays) {
  std::atomic<std::chrono::nanoseconds> computed{std::chrono::nanoseconds(0)};
  Batcher& batcher = Start({.thread_time = [&] { return computed.load(); }});
  model_.fake->on_tile = [&](const SequenceInput&) {
    clock_.Advance(milliseconds(500));  // the worker lost its CPU
    computed = computed.load() + milliseconds(2);
  };
  Hold(batcher);
  const std::vector<Fate*> fates = NewFates(3);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 1, *fate));
  Release();
  for (Fate* fate : fates) fate->Await();
  while (observer_.measured().size() < 2) std::this_thread::yield();
  EXPECT_EQ(observer_.measured().back(), milliseconds(6));
}

TEST_F(BatcherTest, ABatchHoldsRequestsOfOneVersionOfOneModel) {
  Batcher& batcher = Start();
  const Served next = ServeFake("model", 2);
  Hold(batcher);
  const std::vector<Fate*> fates = NewFates(4);
  batcher.Enqueue(Request(model_, 1, *fates[0]));
  batcher.Enqueue(Request(next, 1, *fates[1]));
  batcher.Enqueue(Request(model_, 1, *fates[2]));
  batcher.Enqueue(Request(next, 1, *fates[3]));
  Release();
  for (Fate* fate : fates) {
    fate->Await();
    EXPECT_EQ(fate->timing().batch_requests, 2);
  }
}

TEST_F(BatcherTest, BatchesAreBoundedAndARequestBeyondABoundGoesAlone) {
  Batcher& batcher = Start({.max_batch_items = 10, .max_batch_requests = 3});
  Hold(batcher);
  const std::vector<Fate*> fates = NewFates(4);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 2, *fate));
  Fate& large = NewFate();
  batcher.Enqueue(Request(model_, 500, large));
  Release();
  for (Fate* fate : fates) fate->Await();
  large.Await();
  EXPECT_EQ(fates[0]->timing().batch_requests, 3);
  EXPECT_EQ(fates[3]->timing().batch_requests, 1);
  EXPECT_EQ(large.timing().batch_requests, 1);
  EXPECT_TRUE(large.status().ok());
}

TEST_F(BatcherTest, ACancelledRequestLeavesTheQueueAtOnceAndIsNotComputed) {
  Batcher& batcher = Start();
  Hold(batcher);
  Fate& cancelled = NewFate();
  Fate& fellow = NewFate();
  const RequestHandle handle = batcher.Enqueue(Request(model_, 1, cancelled));
  batcher.Enqueue(Request(model_, 1, fellow));
  batcher.Cancel(handle);
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(batcher.queue().requests, 1);
  batcher.Cancel(handle);
  Release();
  fellow.Await();
  EXPECT_EQ(cancelled.times(), 1);
  EXPECT_EQ(fellow.timing().batch_requests, 1);
  EXPECT_EQ(model_.fake->gate.entered(), 1);
}

TEST_F(BatcherTest, CancellingARunningRequestLeavesOutItsTilesAndNoOthers) {
  Batcher& batcher = Start();
  Hold(batcher);
  model_.fake->gate.Close();
  Fate& first = NewFate();
  Fate& cancelled = NewFate();
  Fate& last = NewFate();
  batcher.Enqueue(Request(model_, 1, first));
  PendingRequest request = Request(model_, 1, cancelled);
  const std::weak_ptr<const void> storage = request.storage;
  const RequestHandle handle = batcher.Enqueue(std::move(request));
  batcher.Enqueue(Request(model_, 1, last));
  Release();
  model_.fake->gate.AwaitEntered(1);
  batcher.Cancel(handle);
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(storage.expired()) << "a worker may still read it";
  model_.fake->gate.Open();
  first.Await();
  last.Await();
  EXPECT_TRUE(batcher.WaitDrained(kNever));
  EXPECT_TRUE(storage.expired());
  EXPECT_TRUE(first.status().ok());
  EXPECT_TRUE(last.status().ok());
  EXPECT_EQ(cancelled.times(), 1);
  EXPECT_EQ(model_.fake->gate.entered(), 2);
  EXPECT_THAT(observer_.refusals(), ElementsAre(RefusalReason::kCancelled));
}

TEST_F(BatcherTest, DeadlinesEndRequestsBeforeInAndAfterTheQueue) {
  Batcher& batcher = Start();
  const auto with_deadline = [&](Fate& fate, milliseconds left) {
    PendingRequest request = Request(model_, 1, fate);
    request.deadline = clock_.now() + left;
    batcher.Enqueue(std::move(request));
  };
  Fate& before = NewFate();
  Fate& in_queue = NewFate();
  Fate& running = NewFate();
  Fate& in_time = NewFate();
  with_deadline(before, milliseconds(0));
  EXPECT_EQ(before.status().code(), absl::StatusCode::kDeadlineExceeded);
  model_.fake->gate.Close();
  with_deadline(running, milliseconds(10));
  model_.fake->gate.AwaitEntered(1);
  with_deadline(in_queue, milliseconds(20));
  with_deadline(in_time, milliseconds(80));
  clock_.Advance(milliseconds(30));
  batcher.Tick();
  EXPECT_EQ(running.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(in_queue.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(in_time.times(), 0);
  model_.fake->gate.Open();
  in_time.Await();
  EXPECT_TRUE(in_time.status().ok());
  EXPECT_EQ(running.times(), 1);
  EXPECT_EQ(model_.fake->gate.entered(), 2);
  EXPECT_THAT(observer_.refusals(), ElementsAre(RefusalReason::kExpired, RefusalReason::kExpired,
                                                RefusalReason::kExpired));
}

TEST_F(BatcherTest, AFullQueueRefusesWithTheTimeThatItNeedsToDrain) {
  Batcher& batcher = Start({.max_queued_requests = 2});
  Hold(batcher);
  const std::vector<Fate*> fates = NewFates(2);
  Fate& refused = NewFate();
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 50, *fate));
  batcher.Enqueue(Request(model_, 50, refused));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max-queued-requests is 2"));
  // Two requests of 50 ms and the blocker's 1 ms on one worker.
  EXPECT_EQ(RetryAfterOf(refused.status()), milliseconds(101));
  EXPECT_EQ(batcher.Admit(1).status().code(), absl::StatusCode::kResourceExhausted);
  Release();
}

TEST_F(BatcherTest, QueuedCostIsBoundedButOneRequestOfASizeIsAlwaysLetIn) {
  Batcher& batcher = Start({.max_queued_cost = milliseconds(100)});
  Hold(batcher);
  Fate& large = NewFate();
  Fate& refused = NewFate();
  batcher.Enqueue(Request(model_, 500, large));
  EXPECT_EQ(large.times(), 0);
  batcher.Enqueue(Request(model_, 500, refused));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max-queued-cost is 0.1 s"));
  Release();
  large.Await();
  EXPECT_TRUE(large.status().ok());
}

TEST_F(BatcherTest, ALongRequestThatWaitsDoesNotShutShortOnesOut) {
  Batcher& batcher = Start({.max_queued_cost = milliseconds(151)});
  Hold(batcher);
  batcher.Enqueue(Request(model_, 5000, NewFate()));
  // By the time that they are done the long one and the blocker's model may each have had as much
  // as they: 3 * 50 ms.
  const std::vector<Fate*> fates = NewFates(50);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 1, *fate));
  Fate& refused = NewFate();
  batcher.Enqueue(Request(model_, 1, refused));
  for (Fate* fate : fates) EXPECT_EQ(fate->times(), 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  Release();
}

TEST_F(BatcherTest, AShareThatOthersCanFillAgainCountsAgainstTheBoundHoweverLittleTheyWaitWith) {
  Batcher& batcher = Start({.max_queued_cost = milliseconds(151)});
  const Served other = ServeFake("other");  // and the blocker's: 3 * 50 ms
  Hold(batcher);
  batcher.Enqueue(Request(other, 1, NewFate()));
  const std::vector<Fate*> fates = NewFates(50);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 1, *fate));
  Fate& refused = NewFate();
  batcher.Enqueue(Request(model_, 1, refused));
  for (Fate* fate : fates) EXPECT_EQ(fate->times(), 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  Release();
}

TEST_F(BatcherTest, AModelsOwnQueueLimitHoldsForItAlone) {
  Batcher& batcher = Start();
  ModelBatchingOptions own;
  own.max_queued_requests = 1;
  const Served narrow = ServeFake("narrow", 1, own);
  Hold(batcher);
  Fate& first = NewFate();
  Fate& refused = NewFate();
  Fate& other = NewFate();
  batcher.Enqueue(Request(narrow, 1, first));
  batcher.Enqueue(Request(narrow, 1, refused));
  batcher.Enqueue(Request(model_, 1, other));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("1 requests of model narrow wait"));
  Release();
  first.Await();
  other.Await();
  EXPECT_TRUE(other.status().ok());
}

TEST_F(BatcherTest, BytesAreHeldFromAdmissionToTheEndOfTheStorage) {
  Batcher& batcher = Start({.max_queued_bytes = 100});
  auto first = batcher.Admit(60);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(batcher.Admit(41).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(batcher.queue().bytes, 60);
  first->reset();
  EXPECT_TRUE(batcher.Admit(100).ok());
  const absl::Status too_large = batcher.Admit(101).status();
  EXPECT_EQ(too_large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_large.message()), HasSubstr("--max-queued-bytes"));
}

TEST_F(BatcherTest, DrainingRefusesWhatIsNewAndFinishesWhatWasAccepted) {
  Batcher& batcher = Start();
  Hold(batcher);
  Fate& accepted = NewFate();
  Fate& refused = NewFate();
  batcher.Enqueue(Request(model_, 1, accepted));
  batcher.Drain();
  batcher.Enqueue(Request(model_, 1, refused));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(batcher.Admit(1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(batcher.WaitDrained(Clock::now()));
  Release();
  EXPECT_TRUE(batcher.WaitDrained(kNever));
  accepted.Await();
  EXPECT_TRUE(accepted.status().ok());
}

TEST_F(BatcherTest, AbandoningEndsWhatIsQueuedAndWhatRuns) {
  Batcher& batcher = Start();
  Hold(batcher);
  Fate& queued = NewFate();
  batcher.Enqueue(Request(model_, 1, queued));
  batcher.Abandon();
  EXPECT_EQ(queued.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(blocked_.status().code(), absl::StatusCode::kUnavailable);
  Release();
  EXPECT_TRUE(batcher.WaitDrained(kNever));
  EXPECT_EQ(blocked_.times(), 1);
  EXPECT_EQ(model_.fake->gate.entered(), 0);
}

TEST_F(BatcherTest, AQueueDelayWaitsForCompanyAtMostSoLong) {
  Batcher& batcher = Start({.max_queue_delay = milliseconds(5)});
  Fate& first = NewFate();
  Fate& second = NewFate();
  batcher.Enqueue(Request(model_, 1, first));
  clock_.Advance(milliseconds(4));
  batcher.Tick();
  batcher.Enqueue(Request(model_, 1, second));
  EXPECT_EQ(batcher.queue().requests, 2);
  clock_.Advance(milliseconds(1));
  batcher.Tick();
  first.Await();
  second.Await();
  EXPECT_EQ(second.timing().batch_requests, 2);
  EXPECT_EQ(first.timing().queue, milliseconds(5));
}

TEST_F(BatcherTest, AFullBatchDoesNotWaitForTheQueueDelay) {
  Batcher& batcher = Start({.max_batch_requests = 2, .max_queue_delay = milliseconds(5)});
  Fate& first = NewFate();
  Fate& second = NewFate();
  batcher.Enqueue(Request(model_, 1, first));
  batcher.Enqueue(Request(model_, 1, second));
  first.Await();
  second.Await();
  EXPECT_EQ(first.timing().batch_requests, 2);
}

TEST_F(BatcherTest, WhenTheModelCantBeginEachRequestOfTheBatchGetsItsStatus) {
  Batcher& batcher = Start();
  Hold(batcher);
  model_.fake->forward_status = absl::ResourceExhaustedError("no memory");
  const std::vector<Fate*> fates = NewFates(2);
  for (Fate* fate : fates) batcher.Enqueue(Request(model_, 1, *fate));
  Release();
  for (Fate* fate : fates) {
    fate->Await();
    EXPECT_EQ(fate->status(), absl::ResourceExhaustedError("no memory"));
  }
  EXPECT_TRUE(batcher.WaitDrained(kNever));
}

TEST_F(BatcherTest, WhatATileThrowsFailsItsRequestAlone) {
  Batcher& batcher = Start();
  Hold(batcher);
  model_.fake->on_tile = [](const SequenceInput& input) {
    if (input.items.row(0)[0] == 13) throw std::bad_alloc();
  };
  Fate& unlucky = NewFate();
  Fate& fellow = NewFate();
  batcher.Enqueue(Request(model_, 1, unlucky, 13));
  batcher.Enqueue(Request(model_, 1, fellow, 14));
  Release();
  unlucky.Await();
  fellow.Await();
  EXPECT_EQ(unlucky.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fellow.value(), 28);
}

TEST_F(BatcherTest, WorkWithoutProgressIsAStallUntilATileIsDone) {
  Batcher& batcher = Start({.stall_timeout = milliseconds(1000)});
  Hold(batcher);
  batcher.Tick();
  clock_.Advance(milliseconds(500));
  batcher.Tick();
  clock_.Advance(milliseconds(499));
  batcher.Tick();
  EXPECT_THAT(observer_.stalls(), ElementsAre());
  clock_.Advance(milliseconds(1));
  batcher.Tick();
  EXPECT_THAT(observer_.stalls(), ElementsAre(true));
  Release();
  EXPECT_TRUE(batcher.WaitDrained(kNever));
  while (batcher.load().open_jobs > 0) std::this_thread::yield();
  batcher.Tick();
  EXPECT_THAT(observer_.stalls(), ElementsAre(true, false));
}

TEST_F(BatcherTest, AModelThatWasRemovedFinishesWhatItTookAndIsThenFreed) {
  Batcher& batcher = Start();
  Served old = ServeFake("old");
  const std::weak_ptr<const ServedModel> watch = old.model;
  old.fake->gate.Close();
  Fate& fate = NewFate();
  batcher.Enqueue(Request(old, 1, fate));
  old.fake->gate.AwaitEntered(1);
  Gate& gate = old.fake->gate;
  old.model.reset();
  EXPECT_FALSE(watch.expired());
  gate.Open();
  fate.Await();
  EXPECT_TRUE(fate.status().ok());
  batcher_.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace attend

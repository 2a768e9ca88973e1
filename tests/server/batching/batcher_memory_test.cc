// Memory that runs out between the queue and the workers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <new>

#include "server/batching/batcher.h"
#include "tests/server/batching/fakes.h"

namespace {

// The calling thread's allocations until one fails, once; below 0 none does.
thread_local int64_t t_until_failure = -1;

}  // namespace

void* operator new(size_t size) {
  void* memory = t_until_failure == 0 ? nullptr : std::malloc(size);
  if (t_until_failure >= 0) --t_until_failure;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace attend {
namespace {

TEST(BatcherMemory, WhicheverAllocationOfABatchFailsEveryRequestEndsOnceAndTheNextIsComputed) {
  int failures = 0;
  bool failed = true;
  for (int64_t allocation = 0; failed; ++allocation) {
    SCOPED_TRACE(allocation);
    const Served blocker = ServeFake("blocker"), model = ServeFake("model");
    FakeClock clock;
    BatchObserver observer;
    std::deque<Fate> fates(5);
    BatcherOptions options;
    options.threads = 1;
    options.now = clock.source();
    Batcher batcher(options, &observer);
    blocker.fake->gate.Close();
    batcher.Enqueue(MakeRequest(blocker, 1, 1, fates[0], clock.now()));
    blocker.fake->gate.AwaitEntered(1);
    for (int i = 1; i < 4; ++i) {
      PendingRequest request = MakeRequest(model, 1, 1, fates[i], clock.now());
      request.deadline = clock.now() + std::chrono::seconds(10);
      batcher.Enqueue(std::move(request));
    }

    t_until_failure = allocation;
    batcher.Pump();
    failed = t_until_failure < 0;
    t_until_failure = -1;

    blocker.fake->gate.Open();
    batcher.Enqueue(MakeRequest(model, 1, 1, fates[4], clock.now()));
    for (Fate& fate : fates) {
      fate.Await();
      if (fate.status().ok()) continue;
      EXPECT_EQ(fate.status().code(), absl::StatusCode::kResourceExhausted);
      ++failures;
    }
    EXPECT_TRUE(batcher.WaitDrained(Clock::now() + std::chrono::minutes(1)));
    EXPECT_TRUE(fates[4].status().ok());
    for (const Fate& fate : fates) EXPECT_EQ(fate.times(), 1);
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace attend

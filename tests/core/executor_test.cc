#include "core/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <new>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace attend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What ran, in order, from any thread.
class Log {
 public:
  void Add(const std::string& entry) {
    MutexLock lock(&mutex_);
    entries_.push_back(entry);
  }
  std::vector<std::string> entries() const {
    MutexLock lock(&mutex_);
    return entries_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

// `tiles` tiles of cost 1; with `chained`, each becomes runnable when the one before is finished.
class TestJob : public Job {
 public:
  using Body = std::function<void(int index)>;
  TestJob(int tiles, Body body, bool chained = false)
      : tiles_(tiles), body_(std::move(body)), runnable_(chained ? std::min(tiles, 1) : tiles) {}

  int64_t runnable() const override { return runnable_; }
  bool Claim(Tile* tile) override {
    if (runnable_ == 0) return false;
    --runnable_;
    *tile = {0, claimed_++, 1.0};
    return true;
  }
  void Run(const Tile& tile, Workspace&) override { body_(tile.index); }
  void Fail(const Tile& tile, const absl::Status& status) override {
    failures.Add(std::to_string(tile.index) + " " + status.ToString());
  }
  int64_t Finish(const Tile&) override {
    ++finished_;
    if (runnable_ > 0 || claimed_ == tiles_ || claimed_ > finished_) return 0;
    return ++runnable_;
  }
  bool exhausted() const override { return finished_ == tiles_; }
  void Cancel(int64_t) override {}

  Log failures;

 private:
  const int tiles_;
  const Body body_;
  int64_t runnable_;
  int32_t claimed_ = 0, finished_ = 0;
};

// Holds the only worker of an executor until told, so that what is submitted meanwhile is ranked.
class Gate {
 public:
  explicit Gate(Executor& executor) {
    executor.Submit(std::make_shared<TestJob>(1,
                                              [this](int) {
                                                entered_.release();
                                                open_.acquire();
                                              }),
                    Rank{-1, 0, 0}, 1);
    entered_.acquire();
  }
  void Open() { open_.release(); }

 private:
  std::binary_semaphore entered_{0}, open_{0};
};

std::shared_ptr<TestJob> Logging(Log& log, const std::string& name, int tiles) {
  return std::make_shared<TestJob>(
      tiles, [&log, name](int index) { log.Add(name + std::to_string(index)); });
}

TEST(Executor, RunsEveryTileOnceOnAnyNumberOfThreads) {
  for (int threads : {1, 2, 4, 16}) {
    Executor executor({.threads = threads});
    EXPECT_EQ(executor.threads(), threads);
    std::vector<std::atomic<int>> ran(1000);
    for (int job = 0; job < 10; ++job) {
      executor.Submit(
          std::make_shared<TestJob>(100, [&ran, job](int index) { ++ran[job * 100 + index]; }),
          Rank{0, 1, 1}, 100);
    }
    executor.WaitIdle();
    for (const std::atomic<int>& count : ran) EXPECT_EQ(count, 1);
    EXPECT_EQ(executor.load().tiles_done, 1000);
    EXPECT_EQ(executor.load().flop_done, 1000);
    EXPECT_EQ(executor.load().open_jobs, 0);
  }
}

TEST(Executor, TilesThatWaitForOthersRunAfterThem) {
  Executor executor({.threads = 4});
  Log log;
  executor.Submit(std::make_shared<TestJob>(
                      5, [&](int index) { log.Add(std::to_string(index)); }, true),
                  Rank{0, 1, 1}, 5);
  executor.WaitIdle();
  EXPECT_THAT(log.entries(), ElementsAre("0", "1", "2", "3", "4"));
}

TEST(Executor, AJobWithoutTilesIsDoneAtOnce) {
  Executor executor({.threads = 1});
  Log log;
  executor.Submit(Logging(log, "none", 0), Rank{}, 0);
  executor.WaitIdle();
  EXPECT_EQ(executor.load().open_jobs, 0);
}

TEST(Executor, LowerKeysGoFirstThenTheFirstSubmitted) {
  Executor executor({.threads = 1});
  Log log;
  Gate gate(executor);
  executor.Submit(Logging(log, "late", 1), Rank{0, 9, 9}, 1);
  executor.Submit(Logging(log, "handicapped", 1), Rank{0, 5, 5, 20}, 1);
  executor.Submit(Logging(log, "early", 1), Rank{0, 5, 5}, 1);
  executor.Submit(Logging(log, "early too", 1), Rank{0, 5, 5}, 1);
  gate.Open();
  executor.WaitIdle();
  EXPECT_THAT(log.entries(), ElementsAre("early0", "early too0", "late0", "handicapped0"));
  EXPECT_EQ(executor.virtual_time(), 9) << "a handicap is no service";
}

TEST(Executor, ALongJobProceedsAQuantumAtATimeBetweenShortOnes) {
  Executor executor({.threads = 1});
  Log log;
  Gate gate(executor);
  // Keys of the long one: 2, 3, 4, 4; of the short ones: 2.5 and 3.5.
  executor.Submit(Logging(log, "long", 4), Rank{0, 4, 2}, 4);
  executor.Submit(Logging(log, "a", 1), Rank{1.5, 1, 2}, 1);
  executor.Submit(Logging(log, "b", 1), Rank{2.5, 1, 2}, 1);
  gate.Open();
  executor.WaitIdle();
  EXPECT_THAT(log.entries(), ElementsAre("long0", "a0", "long1", "b0", "long2", "long3"));
  EXPECT_EQ(executor.virtual_time(), 4);
}

TEST(Executor, WhatATileThrowsFailsThatTileAlone) {
  Executor executor({.threads = 1});
  const auto job = std::make_shared<TestJob>(3, [](int index) {
    if (index == 0) throw std::bad_alloc();
    if (index == 1) throw std::runtime_error("could not execute a primitive");
  });
  executor.Submit(job, Rank{}, 3);
  executor.WaitIdle();
  EXPECT_THAT(job->failures.entries(),
              ElementsAre(HasSubstr("0 RESOURCE_EXHAUSTED: out of memory"),
                          HasSubstr("1 INTERNAL: computing failed: could not execute")));
}

TEST(Executor, ItsEndFinishesWhatWasSubmitted) {
  std::atomic<int> ran = 0;
  {
    Executor executor({.threads = 2});
    executor.Submit(std::make_shared<TestJob>(
                        50, [&](int) { ++ran; }, true),
                    Rank{}, 50);
  }
  EXPECT_EQ(ran, 50);
}

// Gives one job of one tile for every Add.
class TestSource : public JobSource {
 public:
  void Add(Executor& executor) {
    waiting.fetch_add(1);
    executor.Wake();
  }
  bool Wants(double next_key) const override {
    return waiting.load() > 0 && next_key > rank.start + rank.cost;
  }
  bool Pump() override {
    const int taken = waiting.exchange(0);
    for (int i = 0; i < taken; ++i) executor->Submit(Logging(log, "pumped", 1), rank, 1);
    return taken > 0;
  }

  Executor* executor = nullptr;
  Rank rank;
  Log log;
  std::atomic<int> waiting{0};
};

TEST(Executor, SleepingWorkersAskTheSourceWhenWoken) {
  TestSource source;
  Executor executor({.threads = 2, .source = &source});
  source.executor = &executor;
  for (int i = 0; i < 2000; ++i) {
    source.Add(executor);
    while (executor.load().tiles_done <= i) std::this_thread::yield();
  }
  EXPECT_EQ(source.log.entries().size(), 2000u);
}

TEST(Executor, ASourceIsAskedBeforeATileThatRanksBehindIt) {
  TestSource source;
  source.rank = Rank{0, 2, 2};
  Executor executor({.threads = 1, .source = &source});
  source.executor = &executor;
  Gate gate(executor);
  executor.Submit(Logging(source.log, "early", 1), Rank{0, 1, 1}, 1);
  executor.Submit(Logging(source.log, "late", 1), Rank{0, 3, 3}, 1);
  source.Add(executor);
  gate.Open();
  executor.WaitIdle();
  EXPECT_THAT(source.log.entries(), ElementsAre("early0", "pumped0", "late0"));
}

}  // namespace
}  // namespace attend

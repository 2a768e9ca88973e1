#include "server/batching/byte_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace attend {
namespace {

TEST(ByteBudget, HoldsUpToItsLimitAndRefusesMore) {
  ByteBudget budget(100);
  const auto first = budget.Reserve(60);
  const auto second = budget.Reserve(40);
  EXPECT_TRUE(first && second);
  EXPECT_EQ(budget.held(), 100);
  EXPECT_EQ(budget.Reserve(1), nullptr);
  EXPECT_NE(budget.Reserve(0), nullptr);
}

TEST(ByteBudget, WhatIsLetGoIsFree) {
  ByteBudget budget(100);
  auto first = budget.Reserve(100);
  const auto shared = first;
  first.reset();
  EXPECT_EQ(budget.held(), 100) << "somebody still holds it";
}

TEST(ByteBudget, AReservationMayOutliveIt) {
  std::optional<ByteBudget> budget(100);
  auto held = budget->Reserve(10);
  budget.reset();
  held.reset();
  EXPECT_EQ(held, nullptr);
}

TEST(ByteBudget, ThreadsNeverHoldMoreThanTheLimitTogether) {
  ByteBudget budget(10);
  std::atomic<int64_t> inside{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const auto held = budget.Reserve(3);
        if (!held) continue;
        if (inside.fetch_add(3) + 3 > 10) exceeded = true;
        inside.fetch_sub(3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(budget.held(), 0);
}

}  // namespace
}  // namespace attend

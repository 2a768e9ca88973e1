#include "server/observe/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "server/observe/rate_limit.h"

namespace attend {
namespace {

using ::testing::ElementsAre;

TEST(Buckets, SecondsReachFromAnEmptyCallToTwiceTheGracePeriod) {
  const std::vector<double> bounds = SecondsBuckets();
  EXPECT_EQ(bounds.front(), 50e-6);
  EXPECT_GE(bounds.back(), 60);
  EXPECT_LT(bounds.size(), 40u);
  for (size_t i = 1; i < bounds.size(); ++i) {
    EXPECT_GT(bounds[i] / bounds[i - 1], 1.5);
    EXPECT_LT(bounds[i] / bounds[i - 1], 1.7);
  }
}

TEST(Buckets, BoundsAreRoundNumbers) {
  EXPECT_THAT(LogBuckets(1, 100, 3), ElementsAre(1, 2.15, 4.64, 10, 21.5, 46.4, 100));
  EXPECT_THAT(DoublingBuckets(8), ElementsAre(1, 2, 4, 8));
}

TEST(RateLimit, AllowsSoManyASecond) {
  RateLimit limit(2);
  const std::chrono::steady_clock::time_point start(std::chrono::hours(1));
  EXPECT_TRUE(limit.Allow(start));
  EXPECT_TRUE(limit.Allow(start));
  EXPECT_FALSE(limit.Allow(start + std::chrono::milliseconds(999)));
  EXPECT_TRUE(limit.Allow(start + std::chrono::seconds(1)));
}

}  // namespace
}  // namespace attend

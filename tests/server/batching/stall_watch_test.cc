#include "server/batching/stall_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace attend {
namespace {

using std::chrono::seconds;

struct Look {
  int64_t second;
  int64_t tiles_done;
  bool work_waits;
  bool stalled;  // after the look
};

void Expect(const std::vector<Look>& looks) {
  StallWatch watch(seconds(10));
  bool before = false;
  for (const Look& look : looks) {
    const Clock::time_point now{seconds(1000 + look.second)};
    EXPECT_EQ(watch.Look(now, look.tiles_done, look.work_waits), look.stalled != before)
        << "at second " << look.second;
    EXPECT_EQ(watch.stalled(), look.stalled) << "at second " << look.second;
    before = look.stalled;
  }
}

TEST(StallWatch, NothingToDoIsNoStallHoweverLong) {
  Expect(
      {{0, 5, false, false}, {100, 5, false, false}, {101, 5, true, false}, {110, 5, true, false}});
}

TEST(StallWatch, WorkWithoutATileDoneForTheTimeoutIsAStallOnce) {
  Expect({{0, 5, false, false},
          {1, 5, true, false},
          {9, 5, true, false},
          {10, 5, true, false},
          {11, 5, true, true},
          {50, 5, true, true}});
}

TEST(StallWatch, ATileDoneEndsIt) {
  Expect({{0, 5, true, false},
          {10, 5, true, true},
          {11, 6, true, false},
          {20, 6, true, false},
          {21, 6, true, true}});
}

TEST(StallWatch, SlowProgressIsProgress) {
  Expect({{0, 1, true, false}, {9, 2, true, false}, {18, 3, true, false}, {27, 4, true, false}});
}

}  // namespace
}  // namespace attend

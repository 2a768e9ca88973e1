#include "server/batching/batch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace attend {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Clock::time_point kNow{std::chrono::hours(1)};
constexpr Clock::time_point kNever = Clock::time_point::max();
constexpr double kMs = 1e-3;

// A queue as a test's table writes it.
class Table {
 public:
  struct Row {
    int model = 0;
    uint32_t priority = 0;
    int64_t items = 1;
    double cost = kMs;
    milliseconds waited{0};
    milliseconds deadline{0};  // from now; 0: none
  };

  LaneLimits limits{.max_items = 100, .max_requests = 4, .max_cost = 10 * kMs};
  PolicyOptions options;
  double virtual_time = 0;

  // Returns the row's handle: 1, 2, 3 ...
  uint64_t Add(const Row& row) {
    QueueEntry entry;
    entry.handle = ++last_;
    entry.lane = {&models_[row.model], PriorityClass(row.priority), SizeClass(row.cost, options)};
    entry.items = row.items;
    entry.cost = row.cost;
    entry.arrival = kNow - row.waited;
    entry.due = entry.arrival + options.patience;
    if (row.deadline.count() > 0) {
      entry.due = std::min(entry.due, kNow + row.deadline);
      entry.latest_start = kNow + row.deadline;
    }
    queue.Add(entry, limits, virtual_time);
    return last_;
  }
  // The handles of the batch that goes next; none: nothing may go.
  std::vector<uint64_t> Next() const {
    const Outlook outlook = Look(queue, kNow, options);
    if (!outlook.next) return {};
    return Plan(outlook.next->lane, queue.lanes().at(outlook.next->lane), options).handles;
  }
  // Takes the next batch out, as the queue does.
  std::vector<uint64_t> Take() {
    const Outlook outlook = Look(queue, kNow, options);
    const Lane& lane = queue.lanes().at(outlook.next->lane);
    const PlannedBatch plan = Plan(outlook.next->lane, lane, options);
    std::vector<QueueEntry> taken;
    for (const auto& [position, entry] : lane.by_due()) {
      if (std::count(plan.handles.begin(), plan.handles.end(), entry.handle))
        taken.push_back(entry);
    }
    for (const QueueEntry& entry : taken) queue.Remove(entry);
    queue.Charge(outlook.next->lane, plan.cost);
    // A worker alone with this batch.
    virtual_time = std::max(virtual_time, plan.rank.start + plan.rank.cost);
    return plan.handles;
  }
  Outlook outlook() const { return Look(queue, kNow, options); }

  QueueContents queue;

 private:
  ServedModel models_[3];
  uint64_t last_ = 0;
};

TEST(BatchPolicy, AnEmptyQueueHasNothingToGoAndNothingToWaitFor) {
  const Table table;
  EXPECT_FALSE(table.outlook().next);
  EXPECT_EQ(table.outlook().look_again, kNever);
}

TEST(BatchPolicy, WithoutADelayWhatIsThereGoesAtOnce) {
  Table table;
  table.Add({});
  table.Add({});
  EXPECT_THAT(table.Next(), ElementsAre(1, 2));
}

struct BoundCase {
  const char* name;
  LaneLimits limits;
  std::vector<Table::Row> rows;
  std::vector<uint64_t> batch;
};

class Bounds : public ::testing::TestWithParam<BoundCase> {};

TEST_P(Bounds, CloseTheBatch) {
  Table table;
  table.limits = GetParam().limits;
  for (const Table::Row& row : GetParam().rows) table.Add(row);
  EXPECT_EQ(table.Next(), GetParam().batch);
}

INSTANTIATE_TEST_SUITE_P(
    BatchPolicy, Bounds,
    ::testing::Values(
        BoundCase{"requests", {100, 2, 1}, {{}, {}, {}}, {1, 2}},
        BoundCase{"items", {10, 9, 1}, {{.items = 6}, {.items = 4}, {.items = 1}}, {1, 2}},
        BoundCase{
            "items_that_do_not_fit", {10, 9, 1}, {{.items = 6}, {.items = 5}, {.items = 1}}, {1}},
        BoundCase{"cost", {100, 9, 3.5 * kMs}, {{}, {}, {}, {}}, {1, 2, 3}},
        BoundCase{"one_alone_beyond_items", {10, 9, 1}, {{.items = 500}, {}}, {1}},
        BoundCase{"one_alone_beyond_cost", {100, 9, 0.5 * kMs}, {{}, {}}, {1}},
        BoundCase{
            "delay_not_reached", {100, 9, 1, milliseconds(5)}, {{.waited = milliseconds(4)}}, {}},
        BoundCase{"delay_of_the_oldest",
                  {100, 9, 1, milliseconds(5)},
                  {{.waited = milliseconds(5)}, {}},
                  {1, 2}},
        BoundCase{"requests_before_delay", {100, 2, 1, milliseconds(5)}, {{}, {}}, {1, 2}},
        BoundCase{"items_before_delay", {10, 9, 1, milliseconds(5)}, {{.items = 10}}, {1}},
        BoundCase{"cost_before_delay", {100, 9, 1 * kMs, milliseconds(5)}, {{}}, {1}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(BatchPolicy, ADelayNeverWaitsPastTheLatestStartOfTheMostUrgent) {
  Table table;
  table.limits.max_delay = milliseconds(50);
  table.Add({.deadline = milliseconds(20)});
  EXPECT_FALSE(table.outlook().next);
  EXPECT_EQ(table.outlook().look_again, kNow + milliseconds(20));
}

TEST(BatchPolicy, SaysWhenADelayBoundWillCloseABatch) {
  Table table;
  table.limits.max_delay = milliseconds(50);
  table.Add({.waited = milliseconds(20)});
  table.Add({.model = 1, .waited = milliseconds(10)});
  EXPECT_EQ(table.outlook().look_again, kNow + milliseconds(30));
}

TEST(BatchPolicy, EarliestDeadlineFirstInsideAClass) {
  Table table;
  table.Add({.deadline = milliseconds(300)});
  table.Add({.deadline = milliseconds(100)});
  table.Add({});
  table.Add({.deadline = milliseconds(200)});
  EXPECT_THAT(table.Next(), ElementsAre(2, 4, 1, 3));
}

TEST(BatchPolicy, WithoutADeadlineARequestIsDueSomeTimeAfterItsArrival) {
  Table table;
  table.Add({.waited = milliseconds(950)});
  table.Add({.deadline = milliseconds(60)});
  table.Add({.deadline = milliseconds(40)});
  EXPECT_THAT(table.Next(), ElementsAre(3, 1, 2));
}

TEST(BatchPolicy, PriorityOneIsTheHighestAndSilenceIsTwo) {
  EXPECT_EQ(PriorityClass(1), 1);
  EXPECT_EQ(PriorityClass(0), 2);
  EXPECT_EQ(PriorityClass(2), 2);
  EXPECT_EQ(PriorityClass(7), 7);
  Table table;
  table.Add({.priority = 3});
  table.Add({.priority = 0});
  table.Add({.priority = 1});
  EXPECT_THAT(table.Take(), ElementsAre(3));
  EXPECT_THAT(table.Take(), ElementsAre(2));
  EXPECT_THAT(table.Take(), ElementsAre(1));
}

TEST(BatchPolicy, AHigherClassKeepsALowerOneWaitingForItsLeadAndNoLonger) {
  Table table;
  table.limits.max_requests = 1;
  table.options.class_lead = 50 * kMs;
  table.Add({.priority = 3});
  int higher = 0;
  while (true) {
    table.Add({.priority = 1});
    if (table.Take().front() == 1) break;
    ASSERT_LT(++higher, 200);
  }
  EXPECT_NEAR(higher, 100, 1);  // two classes of 50 ms, a millisecond each
}

TEST(BatchPolicy, WithinAClassWaitingChangesNoShares) {
  Table table;
  table.limits.max_requests = 1;
  for (int i = 0; i < 100; ++i) table.Add({.model = 0, .waited = seconds(100)});
  for (int i = 0; i < 100; ++i) table.Add({.model = 1});
  int of_second = 0;
  for (int i = 0; i < 40; ++i) of_second += table.Take().front() > 100;
  EXPECT_NEAR(of_second, 20, 1);
}

TEST(BatchPolicy, OneModelsRequestsDoNotMixWithAnothers) {
  Table table;
  table.Add({.model = 0});
  table.Add({.model = 1});
  table.Add({.model = 0});
  EXPECT_EQ(table.Take().size() + table.Take().size(), 3u);
  EXPECT_FALSE(table.outlook().next);
}

TEST(BatchPolicy, SizeClassesGrowFourfold) {
  const PolicyOptions options{.quantum = 2 * kMs};
  EXPECT_EQ(SizeClass(0, options), 0);
  EXPECT_EQ(SizeClass(2 * kMs, options), 0);
  EXPECT_EQ(SizeClass(2.1 * kMs, options), 1);
  EXPECT_EQ(SizeClass(7.9 * kMs, options), 1);
  EXPECT_EQ(SizeClass(8.1 * kMs, options), 2);
  EXPECT_EQ(SizeClass(1.5, options), 5);
  EXPECT_EQ(SizeClass(std::numeric_limits<double>::infinity(), options), 12);
}

TEST(BatchPolicy, ShortOnesGoBeforeALongOneThatCameFirst) {
  Table table;
  table.Add({.cost = 1.5});
  table.Add({.cost = 0.3 * kMs});
  EXPECT_THAT(table.Take(), ElementsAre(2));
  EXPECT_THAT(table.Take(), ElementsAre(1));
}

TEST(BatchPolicy, AStreamOfShortOnesDoesNotKeepALongOneOut) {
  Table table;
  table.Add({.cost = 1.5});
  int short_ones = 0;
  while (true) {
    table.Add({.cost = 0.6 * kMs});
    if (table.Take().front() == 1) break;
    ASSERT_LT(++short_ones, 10);
  }
  // As many pieces of 0.6 ms as fit into a quantum of 2 ms.
  EXPECT_EQ(short_ones, 3);
}

TEST(BatchPolicy, TwoBacklogsShareTheMachineByTheirWeights) {
  Table table;
  table.limits.max_requests = 1;
  for (int i = 0; i < 400; ++i) {
    table.limits.weight = 1;
    table.Add({.model = 0});
    table.limits.weight = 3;
    table.Add({.model = 1});
  }
  int of_first = 0;
  for (int i = 0; i < 400; ++i) of_first += table.Take().front() % 2;
  EXPECT_NEAR(of_first, 100, 2);
}

TEST(BatchPolicy, ABacklogDoesNotPushBackAModelThatAsksNow) {
  Table table;
  table.limits.max_requests = 1;
  for (int i = 0; i < 100; ++i) table.Add({.model = 0});
  for (int i = 0; i < 10; ++i) table.Take();
  const uint64_t other = table.Add({.model = 1});
  const std::vector<uint64_t> next = table.Take();
  EXPECT_TRUE(next.front() == other || table.Take().front() == other);
}

TEST(BatchPolicy, ALaneThatRestedHasSavedUpNothing) {
  Table table;
  table.limits.max_requests = 1;
  table.Add({.model = 1});
  table.Take();
  for (int i = 0; i < 100; ++i) table.Add({.model = 0});
  for (int i = 0; i < 50; ++i) table.Take();
  for (int i = 0; i < 100; ++i) table.Add({.model = 1});
  int of_second = 0;
  for (int i = 0; i < 40; ++i) of_second += table.Take().front() > 101;
  EXPECT_NEAR(of_second, 20, 1);
}

TEST(BatchPolicy, ARequestThatLeavesTakesItsCostAlong) {
  Table table;
  table.Add({.items = 3, .cost = 0.1});
  EXPECT_EQ(table.queue.items(), 3);
  table.Take();
  EXPECT_EQ(table.queue.requests(), 0);
  EXPECT_EQ(table.queue.items(), 0);
  EXPECT_EQ(table.queue.cost(), 0);
  table.queue.DropIdleLanes(table.virtual_time);
  EXPECT_THAT(table.queue.lanes(), IsEmpty());
}

}  // namespace
}  // namespace attend

// Which requests go into the next batch, and when: a pure function of the queue and the time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/executor.h"
#include "server/batching/queue_contents.h"

namespace attend {

struct PolicyOptions {
  double quantum = 0.002;  // seconds of one worker that a job gets before another may pass it
  // A request that has waited so long counts as one class higher, after twice that as two.
  Clock::duration ageing = std::chrono::seconds(1);
};

// The class of a request's `priority`: 1 is the highest; 0, what callers get who say nothing, is 2.
int64_t PriorityClass(uint32_t priority);
// The size class of a request of `cost` seconds.
int SizeClass(double cost, const PolicyOptions& options);

// The batch that goes next if any may go now.
struct NextBatch {
  LaneKey lane;
  int64_t priority_class = 0;  // the lane's, aged
  double key = 0;              // as Executor ranks it
};

struct Outlook {
  std::optional<NextBatch> next;
  // When time alone changes the answer: a delay bound or an ageing step.
  Clock::time_point look_again = Clock::time_point::max();
};

// The lane that goes next: of those whose batch is closed the lowest class, aged, then the lowest
// key. A batch is closed by its request, item or cost bound, by the delay bound of its oldest
// request, or by the latest start of its most urgent one; without a delay bound, at once.
Outlook Look(const QueueContents& queue, Clock::time_point now, const PolicyOptions& options);

struct PlannedBatch {
  std::vector<uint64_t> handles;  // earliest due first
  int64_t items = 0;
  double cost = 0;
  Rank rank;
};

// The batch of a lane that is not empty: earliest due first, as many as its bounds allow. A request
// beyond them goes alone.
PlannedBatch Plan(const NextBatch& next, const Lane& lane, const PolicyOptions& options);

}  // namespace attend

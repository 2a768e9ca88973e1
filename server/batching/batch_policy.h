// Which requests go into the next batch, and when: a pure function of the queue and the time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/executor.h"
#include "server/batching/queue_contents.h"

namespace attend {

struct PolicyOptions {
  // Seconds of one worker that a job gets before another of its class may pass it.
  double quantum = 0.002;
  // Seconds of one worker's service that a class may be kept behind the one above it.
  double class_lead = 1;
  // Without a deadline a request is due so long after its arrival, lest those with one pass it for
  // ever.
  Clock::duration patience = std::chrono::seconds(1);
};

// The class of a request's `priority`: 1 is the highest; 0, what callers get who say nothing, is 2.
int64_t PriorityClass(uint32_t priority);
// The size class of a request of `cost` seconds.
int SizeClass(double cost, const PolicyOptions& options);

// The batch that goes next if any may go now.
struct NextBatch {
  LaneKey lane;
  double key = 0;  // as Executor ranks it
};

struct Outlook {
  std::optional<NextBatch> next;
  // When time alone closes a batch.
  Clock::time_point look_again = Clock::time_point::max();
};

// The lane that goes next: of those whose batch is closed, the one with the lowest key. A batch is
// closed by its request, item or cost bound, by the delay bound of its oldest request, or by the
// latest start of its most urgent one; without a delay bound, at once.
Outlook Look(const QueueContents& queue, Clock::time_point now, const PolicyOptions& options);

struct PlannedBatch {
  std::vector<uint64_t> handles;  // earliest due first
  int64_t items = 0;
  double cost = 0;
  Rank rank;
};

// The batch of a lane that is not empty: earliest due first, as many as its bounds allow. A request
// beyond them goes alone.
PlannedBatch Plan(const LaneKey& key, const Lane& lane, const PolicyOptions& options);

}  // namespace attend

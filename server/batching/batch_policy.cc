#include "server/batching/batch_policy.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace attend {
namespace {

bool Full(const Lane& lane) {
  return lane.requests() >= lane.limits.max_requests || lane.items() >= lane.limits.max_items ||
         lane.cost() >= lane.limits.max_cost;
}

Clock::time_point ClosesAt(const Lane& lane) {
  if (lane.limits.max_delay == Clock::duration::zero() || Full(lane)) {
    return Clock::time_point::min();
  }
  return std::min(lane.oldest_arrival() + lane.limits.max_delay,
                  lane.by_due().begin()->second.latest_start);
}

// Its most urgent request decides; a request without a deadline is due one ageing step after its
// arrival, so it can't be passed for ever by others that have one.
int64_t AgeingSteps(const Lane& lane, Clock::time_point now, const PolicyOptions& options) {
  const Clock::duration waited = now - lane.by_due().begin()->second.arrival;
  return std::max<int64_t>(0, waited / options.ageing);
}

double Key(const Lane& lane, const PolicyOptions& options) {
  const double cost = std::min(lane.cost(), lane.limits.max_cost);
  return lane.start + std::min(cost, options.quantum) / lane.limits.weight;
}

}  // namespace

int64_t PriorityClass(uint32_t priority) { return priority == 0 ? 2 : priority; }

int SizeClass(double cost, const PolicyOptions& options) {
  constexpr double kLargest = 12;
  const double quanta = cost / options.quantum;
  return quanta > 1 ? static_cast<int>(std::min(kLargest, 1 + std::log2(quanta) / 2)) : 0;
}

Outlook Look(const QueueContents& queue, Clock::time_point now, const PolicyOptions& options) {
  Outlook outlook;
  for (const auto& [key, lane] : queue.lanes()) {
    if (lane.empty()) continue;
    const Clock::time_point closes_at = ClosesAt(lane);
    if (closes_at > now) {
      outlook.look_again = std::min(outlook.look_again, closes_at);
      continue;
    }
    const int64_t steps = AgeingSteps(lane, now, options);
    outlook.look_again = std::min(
        outlook.look_again, lane.by_due().begin()->second.arrival + (steps + 1) * options.ageing);
    const NextBatch next{key, key.priority_class - steps, Key(lane, options)};
    if (!outlook.next || std::tie(next.priority_class, next.key) <
                             std::tie(outlook.next->priority_class, outlook.next->key)) {
      outlook.next = next;
    }
  }
  return outlook;
}

PlannedBatch Plan(const NextBatch& next, const Lane& lane, const PolicyOptions& options) {
  PlannedBatch batch;
  for (const auto& [position, entry] : lane.by_due()) {
    const bool fits = static_cast<int64_t>(batch.handles.size()) < lane.limits.max_requests &&
                      batch.items + entry.items <= lane.limits.max_items &&
                      batch.cost + entry.cost <= lane.limits.max_cost;
    if (!fits && !batch.handles.empty()) break;
    batch.handles.push_back(entry.handle);
    batch.items += entry.items;
    batch.cost += entry.cost;
  }
  batch.rank = {.priority_class = next.priority_class,
                .start = lane.start,
                .cost = batch.cost / lane.limits.weight,
                .quantum = options.quantum / lane.limits.weight};
  return batch;
}

}  // namespace attend

#include "server/batching/batch_policy.h"

#include <algorithm>
#include <cmath>

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

double Handicap(const LaneKey& key, const PolicyOptions& options) {
  return options.class_lead * static_cast<double>(key.priority_class);
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
    const double first_quantum = std::min({lane.cost(), lane.limits.max_cost, options.quantum});
    const double rank = lane.start + Handicap(key, options) + first_quantum / lane.limits.weight;
    if (!outlook.next || rank < outlook.next->key) outlook.next = {key, rank};
  }
  return outlook;
}

PlannedBatch Plan(const LaneKey& key, const Lane& lane, const PolicyOptions& options) {
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
  batch.rank = {.start = lane.start,
                .cost = batch.cost / lane.limits.weight,
                .quantum = options.quantum / lane.limits.weight,
                .handicap = Handicap(key, options)};
  return batch;
}

}  // namespace attend

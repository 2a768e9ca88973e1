// What waits, in the order in which it would be served. A plain container: no lock, no clock.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "server/batching/pending_request.h"

namespace attend {

// Only requests of one lane share a batch, and each lane is one flow of the fair queueing: so a
// model gets its share beside others, and short sequences theirs beside long ones.
struct LaneKey {
  const ServedModel* model = nullptr;
  int64_t priority_class = 0;  // lower first
  int size_class = 0;          // 0: costs up to a quantum; then each four times the one before
  auto operator<=>(const LaneKey&) const = default;
};

// What the policy knows of a request. Costs are seconds of one worker.
struct QueueEntry {
  uint64_t handle = 0;  // grows with arrival
  LaneKey lane;
  int64_t items = 0;
  double cost = 0;
  Clock::time_point arrival;
  Clock::time_point due;                                      // earliest goes first within the lane
  Clock::time_point latest_start = Clock::time_point::max();  // later misses the deadline
};

// When a lane's batch closes, and what share of the machine it has.
struct LaneLimits {
  int64_t max_items = 0;
  int64_t max_requests = 0;
  double max_cost = 0;
  Clock::duration max_delay{0};
  double weight = 1;
};

class Lane {
 public:
  using Position = std::pair<Clock::time_point, uint64_t>;  // due, handle

  explicit Lane(const LaneLimits& limits) : limits(limits) {}

  void Add(const QueueEntry& entry);
  void Remove(const QueueEntry& entry);

  bool empty() const { return entries_.empty(); }
  int64_t requests() const { return static_cast<int64_t>(entries_.size()); }
  int64_t items() const { return items_; }
  double cost() const { return cost_; }
  const std::map<Position, QueueEntry>& by_due() const { return entries_; }
  Clock::time_point oldest_arrival() const { return arrivals_.front().second; }

  LaneLimits limits;
  // Virtual times of fair queueing: when the next batch is entitled to start, and when the last
  // one that was taken will have had its share.
  double start = 0;
  double finish = 0;

 private:
  std::map<Position, QueueEntry> entries_;
  // In order of arrival; entries that left are dropped once they are at the front.
  std::deque<std::pair<Position, Clock::time_point>> arrivals_;
  int64_t items_ = 0;
  double cost_ = 0;
};

class QueueContents {
 public:
  // `limits` and `virtual_time` count when the lane was empty.
  void Add(const QueueEntry& entry, const LaneLimits& limits, double virtual_time);
  void Remove(const QueueEntry& entry);
  // The lane's batch was taken: its next one starts where this one, of `cost`, will have ended.
  void Charge(const LaneKey& key, double cost);
  // Forgets empty lanes that the virtual clock has caught up with.
  void DropIdleLanes(double virtual_time);

  const std::map<LaneKey, Lane>& lanes() const { return lanes_; }
  int64_t requests() const { return requests_; }
  int64_t items() const { return items_; }
  double cost() const { return cost_; }

 private:
  std::map<LaneKey, Lane> lanes_;
  int64_t requests_ = 0;
  int64_t items_ = 0;
  double cost_ = 0;
};

}  // namespace attend

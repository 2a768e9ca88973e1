#include "server/batching/queue_contents.h"

#include <algorithm>

namespace attend {

void Lane::Add(const QueueEntry& entry) {
  const Position position{entry.due, entry.handle};
  entries_.emplace(position, entry);
  arrivals_.emplace_back(position, entry.arrival);
  items_ += entry.items;
  cost_ += entry.cost;
}

void Lane::Remove(const QueueEntry& entry) {
  entries_.erase({entry.due, entry.handle});
  items_ -= entry.items;
  // Sums of many costs drift; an empty lane is exactly 0 again.
  cost_ = entries_.empty() ? 0 : cost_ - entry.cost;
  while (!arrivals_.empty() && !entries_.contains(arrivals_.front().first)) arrivals_.pop_front();
}

void QueueContents::Add(const QueueEntry& entry, const LaneLimits& limits, double virtual_time) {
  Lane& lane = lanes_.try_emplace(entry.lane, limits).first->second;
  if (lane.empty()) {
    lane.limits = limits;
    lane.start = std::max(virtual_time, lane.finish);
  }
  lane.Add(entry);
  ++requests_;
  items_ += entry.items;
  cost_ += entry.cost;
}

void QueueContents::Remove(const QueueEntry& entry) {
  lanes_.at(entry.lane).Remove(entry);
  --requests_;
  items_ -= entry.items;
  cost_ = requests_ == 0 ? 0 : cost_ - entry.cost;
}

void QueueContents::Charge(const LaneKey& key, double cost) {
  Lane& lane = lanes_.at(key);
  lane.start = lane.finish = lane.start + cost / lane.limits.weight;
}

void QueueContents::DropIdleLanes(double virtual_time) {
  std::erase_if(lanes_, [&](const auto& item) {
    return item.second.empty() && item.second.finish <= virtual_time;
  });
}

}  // namespace attend

#include "server/batching/request_queue.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace attend {
namespace {

constexpr double kNoKey = std::numeric_limits<double>::infinity();

Clock::duration Seconds(double seconds) {
  constexpr double kLongest = 1e8;
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

absl::Status Expired() {
  return Refuse(RefusalReason::kExpired, "the deadline passed before the answer was computed");
}

absl::Status Draining() {
  return Refuse(RefusalReason::kDraining, "the server is shutting down; try another one");
}

}  // namespace

RequestQueue::RequestQueue(const QueueOptions& options, BatchObserver* observer)
    : options_(options), observer_(observer), head_key_(kNoKey) {}

LaneLimits RequestQueue::LimitsOf(const ServedModel& model) const {
  const ModelBatchingOptions& own = model.batching;
  LaneLimits limits = options_.limits;
  limits.max_items = own.max_batch_items.value_or(limits.max_items);
  limits.max_requests = own.max_batch_requests.value_or(limits.max_requests);
  limits.weight = own.weight.value_or(limits.weight);
  if (own.max_queue_delay_ms) limits.max_delay = Seconds(*own.max_queue_delay_ms / 1e3);
  return limits;
}

QueueEntry RequestQueue::MakeEntry(const PendingRequest& request, double cost) const {
  QueueEntry entry;
  entry.lane = {request.model.get(), PriorityClass(request.priority),
                SizeClass(cost, options_.policy)};
  entry.items = request.input.num_items();
  entry.cost = cost;
  entry.arrival = request.arrival;
  entry.due = std::min(request.deadline, request.arrival + options_.policy.patience);
  if (request.deadline != Clock::time_point::max()) {
    entry.latest_start = request.deadline - Seconds(cost / options_.workers);
  }
  return entry;
}

double RequestQueue::Backlog(const LaneKey& key, double weight, double extra) const {
  const auto own_lane = queued_.lanes().find(key);
  const double own = extra + (own_lane == queued_.lanes().end() ? 0 : own_lane->second.cost());
  double backlog = own;
  for (const auto& [other, lane] : queued_.lanes()) {
    if (other != key) backlog += std::min(lane.cost(), own * lane.limits.weight / weight);
  }
  return backlog;
}

double RequestQueue::LongestWait(const LaneKey& key, double weight, double extra) const {
  double own = extra, weights = weight;
  for (const auto& [other, lane] : queued_.lanes()) {
    if (other == key) {
      own += lane.cost();
    } else {
      weights += lane.limits.weight;
    }
  }
  return own * weights / weight;
}

std::chrono::milliseconds RequestQueue::RetryAfter(double backlog) const {
  constexpr double kLongest = 60;
  const double seconds = std::clamp(stretch_ * backlog / options_.workers, 1e-3, kLongest);
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

bool RequestQueue::SurelyLate(const QueueEntry& entry, Clock::time_point now) const {
  // Costs are estimates: only what misses by a margin is sure to.
  constexpr double kSure = 0.8;
  const auto lane = queued_.lanes().find(entry.lane);
  if (lane == queued_.lanes().end() || lane->second.empty() || running_ == 0) return false;
  if (lane->second.by_due().rbegin()->second.due > entry.due) return false;
  return now + Seconds(kSure * lane->second.cost() / options_.workers) > entry.latest_start;
}

absl::Status RequestQueue::Check(const PendingRequest& request, const QueueEntry& entry,
                                 Clock::time_point now) const {
  if (draining_) return Draining();
  if (request.deadline <= now) return Expired();
  const double weight = LimitsOf(*request.model).weight;
  const auto full = [&](auto... message) {
    const double waits = Backlog(entry.lane, weight, 0);
    return Refuse(RefusalReason::kQueueFull,
                  absl::StrCat("the queue is full: ", message..., "; try again later"),
                  RetryAfter(waits + std::min(waits, running_cost_)));
  };
  if (queued_.requests() >= options_.max_queued_requests) {
    return full(queued_.requests(), " requests wait, --max-queued-requests is ",
                options_.max_queued_requests);
  }
  const auto own_limit = request.model->batching.max_queued_requests;
  const auto own_count = queued_of_.find(request.model.get());
  if (own_limit && own_count != queued_of_.end() && own_count->second >= *own_limit) {
    return full(own_count->second, " requests of model ", request.model->name,
                " wait, its max_queued_requests is ", *own_limit);
  }
  // One request is let into an empty lane however much it costs.
  const auto lane = queued_.lanes().find(entry.lane);
  const double wait = stretch_ * LongestWait(entry.lane, weight, entry.cost);
  if (lane != queued_.lanes().end() && !lane->second.empty() && wait > options_.max_queued_cost) {
    return full("this request could be done after ", wait, " s of a worker, --max-queued-cost is ",
                options_.max_queued_cost, " s");
  }
  if (SurelyLate(entry, now)) {
    return Refuse(RefusalReason::kPredicted,
                  "the deadline can't be met: what waits already takes longer");
  }
  return absl::OkStatus();
}

void RequestQueue::LearnStretch(double computed, double elapsed) {
  if (computed <= 0) return;
  constexpr double kMemory = 0.5, kMost = 10;  // seconds of computing; of a CPU at least a tenth
  const double seen = std::clamp(elapsed / computed, 1.0, kMost);
  MutexLock lock(&mutex_);
  stretch_ += (seen - stretch_) * std::min(1.0, computed / kMemory);
}

uint64_t RequestQueue::Add(PendingRequest request, double cost, Clock::time_point now,
                           Orders& orders) {
  QueueEntry entry = MakeEntry(request, cost);
  auto live = std::make_unique<Live>();
  MutexLock lock(&mutex_);
  const uint64_t handle = entry.handle = next_handle_++;
  if (absl::Status refusal = Check(request, entry, now); !refusal.ok()) {
    orders.deliver.push_back({std::move(request.done), std::move(refusal), std::move(request.model),
                              entry.items, std::move(request.storage)});
    return handle;
  }
  const double virtual_time = options_.virtual_time();
  queued_.Add(entry, LimitsOf(*request.model), virtual_time);
  ++queued_of_[request.model.get()];
  live->request = std::move(request);
  live->entry = entry;
  SetAlarm(*live, std::min(entry.latest_start, live->request.deadline));
  live_.emplace(handle, std::move(live));
  Publish(now);
  return handle;
}

std::chrono::milliseconds RequestQueue::RetryAfter() const {
  MutexLock lock(&mutex_);
  return RetryAfter(queued_.cost() + running_cost_);
}

absl::Status RequestQueue::Admissible() const {
  MutexLock lock(&mutex_);
  if (draining_) return Draining();
  if (queued_.requests() < options_.max_queued_requests) return absl::OkStatus();
  return Refuse(
      RefusalReason::kQueueFull,
      absl::StrCat("the queue is full: ", queued_.requests(), " requests wait; try again later"),
      RetryAfter(queued_.cost() + running_cost_));
}

std::optional<TakenBatch> RequestQueue::Take(Clock::time_point now) {
  MutexLock lock(&mutex_);
  const Outlook outlook = Look(queued_, now, options_.policy);
  if (!outlook.next) {
    Publish(now);
    return std::nullopt;
  }
  // All memory comes first: when there is none, nothing has changed.
  const LaneKey lane = outlook.next->lane;
  PlannedBatch plan = Plan(lane, queued_.lanes().at(lane), options_.policy);
  TakenBatch taken{std::make_shared<RunningBatch>(), {}};
  for (const uint64_t handle : plan.handles) {
    taken.inputs.push_back(live_.at(handle)->request.input);
  }
  RunningBatch& batch = *taken.batch;
  for (int64_t b = 0; b < static_cast<int64_t>(plan.handles.size()); ++b) {
    Live& live = *live_.at(plan.handles[b]);
    LeaveQueue(live);
    SetAlarm(live, live.request.deadline);
    live.batch = taken.batch;
    live.sequence = b;
    batch.model = live.request.model;
  }
  batch.handles = std::move(plan.handles);
  batch.items = plan.items;
  batch.cost = plan.cost;
  batch.rank = plan.rank;
  batch.start = now;
  running_ += static_cast<int64_t>(batch.handles.size());
  running_cost_ += plan.cost;
  queued_.Charge(lane, plan.cost);
  queued_.DropIdleLanes(options_.virtual_time());
  Publish(now);
  return taken;
}

void RequestQueue::EndNext(const absl::Status& status, Clock::time_point now, Orders& orders) {
  MutexLock lock(&mutex_);
  const Outlook outlook = Look(queued_, now, options_.policy);
  if (outlook.next) {
    const Lane& lane = queued_.lanes().at(outlook.next->lane);
    End(*live_.at(lane.by_due().begin()->second.handle), status, orders);
  }
  Publish(now);
}

void RequestQueue::Attach(RunningBatch& batch, const std::shared_ptr<Job>& job, Orders& orders) {
  MutexLock lock(&mutex_);
  batch.job = job;
  for (const uint64_t handle : batch.handles) {
    const Live& live = *live_.at(handle);
    if (live.ended) orders.cancel.push_back({job, live.sequence});
  }
}

void RequestQueue::Finish(const RunningBatch& batch, int64_t b,
                          absl::StatusOr<SequenceOutput> output, Clock::time_point now,
                          Orders& orders) {
  std::unique_ptr<Live> live;
  {
    MutexLock lock(&mutex_);
    const auto it = live_.find(batch.handles[b]);
    live = std::move(it->second);
    live_.erase(it);
    SetAlarm(*live, Clock::time_point::max());
    running_cost_ -= live->entry.cost;
    if (--running_ == 0) running_cost_ = 0;
    if (live_.empty()) empty_.notify_all();
  }
  if (live->ended) return;
  PendingRequest& request = live->request;
  const auto answer = [&]() -> absl::StatusOr<Answer> {
    if (!output.ok()) return output.status();
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    return Answer{std::move(*output),
                  {.queue = duration_cast<microseconds>(batch.start - request.arrival),
                   .compute = duration_cast<microseconds>(now - batch.start),
                   .batch_requests = static_cast<int64_t>(batch.handles.size()),
                   .batch_items = batch.items}};
  };
  orders.deliver.push_back({std::move(request.done), answer(), std::move(request.model),
                            live->entry.items, std::move(request.storage)});
}

void RequestQueue::End(Live& live, absl::Status status, Orders& orders) {
  Outcome outcome{std::move(live.request.done), std::move(status), live.request.model,
                  live.entry.items, nullptr};
  SetAlarm(live, Clock::time_point::max());
  if (live.batch) {
    live.ended = true;
    if (std::shared_ptr<Job> job = live.batch->job.lock()) {
      orders.cancel.push_back({std::move(job), live.sequence});
    }
  } else {
    LeaveQueue(live);
    outcome.storage = std::move(live.request.storage);
    live_.erase(live.entry.handle);
    if (live_.empty()) empty_.notify_all();
  }
  orders.deliver.push_back(std::move(outcome));
}

void RequestQueue::Cancel(uint64_t handle, Clock::time_point now, Orders& orders) {
  MutexLock lock(&mutex_);
  const auto it = live_.find(handle);
  if (it == live_.end() || it->second->ended) return;
  End(*it->second, Refuse(RefusalReason::kCancelled, "the caller is gone"), orders);
  Publish(now);
}

void RequestQueue::Tick(Clock::time_point now, Orders& orders) {
  MutexLock lock(&mutex_);
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    Live& live = *live_.at(alarms_.begin()->second);
    if (live.request.deadline <= now) {
      End(live, Expired(), orders);
    } else if (running_ > 0) {
      End(live,
          Refuse(RefusalReason::kPredicted,
                 "the deadline can't be met: computing takes longer than what is left"),
          orders);
    } else {
      SetAlarm(live, live.request.deadline);
    }
  }
  Publish(now);
}

void RequestQueue::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

void RequestQueue::Abandon(Clock::time_point now, Orders& orders) {
  MutexLock lock(&mutex_);
  draining_ = true;
  std::vector<uint64_t> handles;
  for (const auto& [handle, live] : live_) {
    if (!live->ended) handles.push_back(handle);
  }
  std::sort(handles.begin(), handles.end());
  for (const uint64_t handle : handles) {
    End(*live_.at(handle),
        Refuse(RefusalReason::kDraining, "the server shut down before the answer was computed"),
        orders);
  }
  Publish(now);
}

bool RequestQueue::WaitEmpty(Clock::time_point deadline) {
  MutexLock lock(&mutex_);
  while (!live_.empty()) {
    if (empty_.wait_until(mutex_, deadline) == std::cv_status::timeout) return live_.empty();
  }
  return true;
}

void RequestQueue::LeaveQueue(const Live& live) {
  queued_.Remove(live.entry);
  const auto count = queued_of_.find(live.entry.lane.model);
  if (--count->second == 0) queued_of_.erase(count);
}

void RequestQueue::SetAlarm(Live& live, Clock::time_point alarm) {
  auto node = alarms_.extract({live.alarm, live.entry.handle});
  live.alarm = alarm;
  if (alarm == Clock::time_point::max()) return;
  if (node.empty()) {
    alarms_.insert({alarm, live.entry.handle});
  } else {
    // Without a new allocation, which could fail.
    node.value() = {alarm, live.entry.handle};
    alarms_.insert(std::move(node));
  }
}

bool RequestQueue::Wants(double next_key) const { return head_key_.load() < next_key; }

Clock::time_point RequestQueue::next_look() const { return next_look_.load(); }

void RequestQueue::Publish(Clock::time_point now) {
  const Outlook outlook = Look(queued_, now, options_.policy);
  head_key_.store(outlook.next ? outlook.next->key : kNoKey);
  const Clock::time_point alarm =
      alarms_.empty() ? Clock::time_point::max() : alarms_.begin()->first;
  next_look_.store(std::min(outlook.look_again, alarm));
  observer_->OnQueueChanged(Facts());
}

QueueFacts RequestQueue::Facts() const {
  return {.requests = queued_.requests(),
          .items = queued_.items(),
          .cost = std::chrono::nanoseconds(static_cast<int64_t>(queued_.cost() * 1e9)),
          .bytes = options_.held_bytes()};
}

QueueFacts RequestQueue::facts() const {
  MutexLock lock(&mutex_);
  return Facts();
}

}  // namespace attend

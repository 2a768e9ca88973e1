// Every request from its acceptance to its completion, queued or running: the one lock of batching.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/mutex.h"
#include "server/batching/batch_observer.h"
#include "server/batching/batch_policy.h"
#include "server/batching/pending_request.h"

namespace attend {

struct QueueOptions {
  PolicyOptions policy;
  LaneLimits limits;  // where a model does not say otherwise
  int64_t max_queued_requests = 0;
  double max_queued_cost = 0;  // seconds of one worker's clock until a request is done
  int workers = 1;
  std::function<double()> virtual_time;
  std::function<int64_t()> held_bytes;
};

// A request's end, to be delivered without any lock.
struct Outcome {
  Completion done;
  absl::StatusOr<Answer> answer;
  std::shared_ptr<const ServedModel> model;
  int64_t items = 0;
  // What the request owned, if nothing uses it any more: freed with the outcome.
  std::shared_ptr<const void> storage;
};

// Requests that are computed together.
struct RunningBatch {
  std::shared_ptr<const ServedModel> model;
  std::vector<uint64_t> handles;
  int64_t items = 0;
  double cost = 0;
  Rank rank;
  Clock::time_point start;
  std::weak_ptr<Job> job;  // guarded by the queue's lock
};

struct TakenBatch {
  std::shared_ptr<RunningBatch> batch;
  std::vector<SequenceInput> inputs;
};

// What the caller of the queue has to do once it holds no lock.
struct Orders {
  struct Cancel {
    std::shared_ptr<Job> job;
    int64_t sequence = 0;
  };
  std::vector<Outcome> deliver;
  std::vector<Cancel> cancel;
};

// Thread-safe. It calls no completion and no job itself: it hands out what to deliver, and each
// request is handed out exactly once, whichever of Finish, Cancel, Tick and Abandon comes
// first. Once Attach was called for a batch, Finish must come for each of its sequences.
class RequestQueue {
 public:
  RequestQueue(const QueueOptions& options, BatchObserver* observer);

  // Accepts the request, unless it must be refused: then its outcome is in `orders`.
  // `cost` in seconds of one worker.
  uint64_t Add(PendingRequest request, double cost, Clock::time_point now, Orders& orders);
  // OK, or why a request that came now would be refused for its number or for draining.
  absl::Status Admissible() const;
  // How long the workers need for what is queued and running.
  std::chrono::milliseconds RetryAfter() const;

  // Tiles that computed for so many seconds took so many by the clock: where others use the
  // workers' CPUs, waits are longer than the cost of what waits.
  void LearnStretch(double computed, double elapsed);

  // The next batch, if one may go now. std::bad_alloc changes nothing.
  std::optional<TakenBatch> Take(Clock::time_point now);
  // Ends the request that would go next, if one may, with `status`.
  void EndNext(const absl::Status& status, Clock::time_point now, Orders& orders);
  // The batch has become a job: orders it to leave out what ended meanwhile.
  void Attach(RunningBatch& batch, const std::shared_ptr<Job>& job, Orders& orders);
  // The batch's sequence b has been computed, or never will be.
  void Finish(const RunningBatch& batch, int64_t b, absl::StatusOr<SequenceOutput> output,
              Clock::time_point now, Orders& orders);

  void Cancel(uint64_t handle, Clock::time_point now, Orders& orders);
  // What time alone brings: ends what is past its deadline and, while others are computed, what
  // waits and can't meet it any more; closes batches by their delay bound.
  void Tick(Clock::time_point now, Orders& orders);
  void Drain();
  // Ends everything with UNAVAILABLE, and accepts nothing more.
  void Abandon(Clock::time_point now, Orders& orders);
  // Waits until every request has ended and none is being computed; false when `deadline` came.
  bool WaitEmpty(Clock::time_point deadline);

  // Whether a batch may go, as Look said last, that ranks before `next_key`. Lock-free.
  bool Wants(double next_key) const;
  // When Tick should be called next. Lock-free.
  Clock::time_point next_look() const;
  QueueFacts facts() const;

 private:
  struct Live {
    PendingRequest request;
    QueueEntry entry;
    Clock::time_point alarm = Clock::time_point::max();  // when Tick should look at it
    std::shared_ptr<RunningBatch> batch;                 // null while queued
    int64_t sequence = 0;                                // its place in the batch
    bool ended = false;  // handed out while its batch still computes
  };
  using Table = absl::flat_hash_map<uint64_t, std::unique_ptr<Live>>;

  absl::Status Check(const PendingRequest& request, const QueueEntry& entry,
                     Clock::time_point now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SurelyLate(const QueueEntry& entry, Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  QueueEntry MakeEntry(const PendingRequest& request, double cost) const;
  LaneLimits LimitsOf(const ServedModel& model) const;
  // Seconds of one worker until the lane's requests and `extra` seconds more are done: by then each
  // other lane has had no more than its share beside it.
  double Backlog(const LaneKey& key, double weight, double extra) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same if each lane that waits or was served just now keeps getting requests, as in
  // overload.
  double LongestWait(const LaneKey& key, double weight, double extra) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::chrono::milliseconds RetryAfter(double backlog) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Hands a request out with `status`: a queued one is gone, a running one stays until Finish.
  void End(Live& live, absl::Status status, Orders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveQueue(const Live& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAlarm(Live& live, Clock::time_point alarm) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  QueueFacts Facts() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const QueueOptions options_;
  BatchObserver* const observer_;

  mutable Mutex mutex_;
  CondVar empty_;
  Table live_ ABSL_GUARDED_BY(mutex_);
  QueueContents queued_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const ServedModel*, int64_t> queued_of_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::time_point, uint64_t>> alarms_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // requests
  double running_cost_ ABSL_GUARDED_BY(mutex_) = 0;
  double stretch_ ABSL_GUARDED_BY(mutex_) = 1;  // clock time a second of computing takes
  uint64_t next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;

  // What Look said last; written under the lock.
  std::atomic<double> head_key_;
  std::atomic<Clock::time_point> next_look_{Clock::time_point::max()};
};

}  // namespace attend

// From requests to batches to workers: the queue, the policy and the executor joined.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/executor.h"
#include "server/batching/batch_job.h"
#include "server/batching/batch_observer.h"
#include "server/batching/pending_request.h"

namespace attend {

// CPU time of the calling thread.
std::chrono::nanoseconds ThisThreadsTime();

struct BatcherOptions {
  int threads = 0;  // 0: what the container may use
  // A batch is closed when one of these is reached; a request beyond one of them goes alone.
  int64_t max_batch_items = 8192;
  int64_t max_batch_requests = 256;
  std::chrono::microseconds max_batch_cost{20000};  // one worker's time, as the cost model says
  std::chrono::microseconds max_queue_delay{0};     // how long to wait for company; 0: not at all
  // What waits is refused beyond these.
  int64_t max_queued_requests = 4096;
  // One worker's time until a request of this size would be done, in fair shares with what else
  // waits; 0: a second of all workers.
  std::chrono::microseconds max_queued_cost{0};
  int64_t max_queued_bytes = 0;  // of bodies, from admission to answer; 0: a quarter of the memory
  // How long a priority may be kept waiting by the one above it; twice that by the next, and so on.
  std::chrono::milliseconds ageing{1000};
  // The observer hears of a stall when there was work and no tile done for so long; 0: never.
  std::chrono::milliseconds stall_timeout{10000};
  // Tests pass their own.
  std::function<Clock::time_point()> now = Clock::now;
  ThreadTime thread_time = ThisThreadsTime;
};

// A request's name for Cancel.
using RequestHandle = uint64_t;

// Owns the queue, the timer thread and the executor. Thread-safe. Destruction abandons what is
// left.
class Batcher : public JobSource {
 public:
  Batcher(const BatcherOptions& options, BatchObserver* observer);  // observer outlives it
  ~Batcher() override;

  // Whether a body of `bytes` may be decoded now: asked before the copy. On success the bytes are
  // held until the returned object dies (PendingRequest::storage keeps it), at the latest when the
  // request has ended and no worker reads it any more.
  // RESOURCE_EXHAUSTED (kQueueFull with RetryAfter), INVALID_ARGUMENT (kTooLarge: more than
  // max_queued_bytes), UNAVAILABLE (kDraining). The observer is not told: the model is not known.
  absl::StatusOr<std::shared_ptr<const void>> Admit(int64_t bytes);

  // Takes the request over; request.done is called exactly once, possibly before this returns.
  RequestHandle Enqueue(PendingRequest request);
  // The caller is gone: the request completes with CANCELLED unless it was completed before.
  void Cancel(RequestHandle handle);

  // From now on Admit and Enqueue refuse with UNAVAILABLE; what was accepted goes on.
  void Drain();
  // Waits until nothing is queued or running; false when `deadline` came first.
  bool WaitDrained(Clock::time_point deadline);
  // Completes everything still queued or running with UNAVAILABLE.
  void Abandon();

  Executor::Load load() const;
  QueueFacts queue() const;
  // What the queue is bounded by, as resolved for this machine; items are not.
  QueueFacts queue_limits() const;
  int threads() const;

  // Does what has become due by `now`: deadlines, delay bounds, the watch for stalls. A
  // thread of the batcher calls it in time; tests that move the clock do so themselves.
  void Tick();

  // For the executor.
  bool Wants(double next_key) const override;
  bool Pump() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

// From requests to batches to workers: the queue, the policy and the executor joined.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/executor.h"
#include "server/batching/batch_observer.h"
#include "server/batching/pending_request.h"

namespace attend {

struct BatcherOptions {
  int threads = 0;                                 // 0: what the container may use
  int64_t max_batch_items = 8192;
  int64_t max_batch_requests = 256;
  std::chrono::microseconds max_queue_delay{0};    // how long to wait for company; 0: not at all
  int64_t max_queued_requests = 4096;
  int64_t max_queued_bytes = int64_t{1} << 30;
  std::function<Clock::time_point()> now = Clock::now;  // tests pass their own
};

// A request's name for Cancel.
using RequestHandle = uint64_t;

// Owns the queue, the timer thread and the executor. Thread-safe.
class Batcher : public JobSource {
 public:
  Batcher(const BatcherOptions& options, BatchObserver* observer);  // observer outlives it
  ~Batcher() override;

  // Whether a body of `bytes` may be decoded now: asked before the copy. On success the bytes are
  // held until the returned object dies (PendingRequest::storage keeps it).
  // RESOURCE_EXHAUSTED (kQueueFull with RetryAfter), UNAVAILABLE (kDraining).
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

  bool Wants(int64_t next_class, double next_key) const override;
  void Pump() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

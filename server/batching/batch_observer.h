// The only way that batching tells anyone anything. Metrics implement it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/batching/refusal.h"

namespace attend {

struct BatchFacts {
  const std::string& model;
  int64_t version = 0;
  int64_t requests = 0;
  int64_t items = 0;
  double cost = 0;                        // FLOP
  std::chrono::nanoseconds predicted{0};  // one worker's time, as the cost model says
};

// A batch whose last tile is done.
struct BatchCostFacts {
  const std::string& model;
  int64_t version = 0;
  std::chrono::nanoseconds predicted{0};
  std::chrono::nanoseconds measured{0};  // summed over its tiles
  double cost = 0;                       // FLOP of these tiles
};

struct RequestFacts {
  const std::string& model;
  int64_t version = 0;
  int64_t items = 0;
  std::chrono::nanoseconds queue{0};
  std::chrono::nanoseconds compute{0};
};

struct QueueFacts {
  int64_t requests = 0;
  int64_t items = 0;
  std::chrono::nanoseconds cost{0};  // one worker's time, as the cost model says
  int64_t bytes = 0;                 // of all bodies held, queued or not
};

// Called from many threads, some on the hot path: cheap, lock-free where it can be, never blocking,
// never calling back. Outside every lock of batching, OnQueueChanged excepted: it comes under the
// queue's, so that the last call says what is true.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  virtual void OnQueueChanged(const QueueFacts&) {}
  virtual void OnBatchStarted(const BatchFacts&) {}
  virtual void OnBatchFinished(const BatchCostFacts&) {}
  virtual void OnRequestComputed(const RequestFacts&) {}
  // Also those that were accepted and then expired, were predicted to, or were cancelled.
  virtual void OnRequestRefused(const std::string& /*model*/, RefusalReason) {}
  // Runnable work has made no progress for the stall timeout (true), or makes some again (false).
  virtual void OnStalled(bool /*stalled*/) {}
};

}  // namespace attend

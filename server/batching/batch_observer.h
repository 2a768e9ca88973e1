// The only way that batching tells anyone anything. Metrics implement it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/batching/refusal.h"

namespace attend {

struct BatchFacts {
  const std::string& model;
  int64_t requests = 0;
  int64_t items = 0;
  double cost = 0;  // FLOP
};

struct RequestFacts {
  const std::string& model;
  int64_t items = 0;
  std::chrono::nanoseconds queue{0};
  std::chrono::nanoseconds compute{0};
};

struct QueueFacts {
  int64_t requests = 0;
  int64_t items = 0;
  double cost = 0;  // FLOP
  int64_t bytes = 0;
};

// Called from many threads, some on the hot path: cheap, lock-free where it can be, never blocking,
// never calling back. Outside every lock of batching.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  virtual void OnQueueChanged(const QueueFacts&) {}
  virtual void OnBatchStarted(const BatchFacts&) {}
  virtual void OnRequestComputed(const RequestFacts&) {}
  virtual void OnRequestRefused(const std::string& /*model*/, RefusalReason) {}
};

}  // namespace attend

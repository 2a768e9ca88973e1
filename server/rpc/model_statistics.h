// What has become of each model's requests since the start, as ModelStatistics tells it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "server/batching/batch_observer.h"
#include "server/rpc/exchange.h"

namespace attend {

struct CountAndTime {
  int64_t count = 0;
  std::chrono::nanoseconds time{0};
  void Add(std::chrono::nanoseconds more) {
    ++count;
    time += more;
  }
};

struct ModelCounts {
  int64_t batches = 0;
  CountAndTime success, fail, queue, compute;
  std::chrono::system_clock::time_point last;
};

// Of both protocols. Thread-safe.
class ModelStatistics : public BatchObserver, public ExchangeObserver {
 public:
  void OnBatchStarted(const BatchFacts& facts) override;
  void OnRequestComputed(const RequestFacts& facts) override;
  void OnExchange(const ExchangeFacts& facts, const absl::Status& status) override;

  ModelCounts Of(const std::string& model, int64_t version) const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, ModelCounts> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend

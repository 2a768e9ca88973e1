// What the server counts, for Prometheus. docs/operating.md has the table.
#pragma once

#include <absl/strings/string_view.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/batching/batch_observer.h"

namespace prometheus {
class Collectable;
}

namespace attend {

struct BuildFacts {
  std::string version, commit, isa, onednn;
};

// Thread-safe. Every label value comes from a bounded set: models' names as served, methods, codes,
// reasons.
class Metrics : public BatchObserver {
 public:
  explicit Metrics(const BuildFacts& build);
  ~Metrics() override;

  // An exchange of any method ended. `model` is empty when no served model was named, `code` a
  // gRPC code's name such as "INVALID_ARGUMENT".
  struct Exchange {
    absl::string_view method;
    absl::string_view model;
    absl::string_view code;
    std::optional<RefusalReason> refusal;
    std::chrono::nanoseconds duration{0};
  };
  void OnExchange(const Exchange& exchange);
  // Numbers that are read when a scrape asks for them.
  struct Sampled {
    int64_t workers = 0, busy_workers = 0, open_jobs = 0;
    double flop = 0;
    QueueFacts queue, queue_limits;
    struct PrimitiveCache {
      int64_t size = 0, capacity = 0, misses = 0;
    } primitives;
    int64_t refused_connections = 0;
  };
  void SampleWith(std::function<Sampled()> sample);

  // A model became ready to serve: read, checked, measured.
  void OnModelReady(absl::string_view model, std::chrono::nanoseconds load_time);
  // `change` is "loaded", "failed" or "removed".
  void OnModelChange(const std::string& change);

  void OnBatchStarted(const BatchFacts& facts) override;
  void OnBatchFinished(const BatchCostFacts& facts) override;
  void OnRequestComputed(const RequestFacts& facts) override;
  void OnStalled(bool stalled) override;

  // For the exposer.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace attend

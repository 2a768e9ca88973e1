// What happens in batching and on calls, passed on to all who want to know.
#pragma once

#include <functional>
#include <vector>

#include "server/observe/metrics.h"
#include "server/rpc/exchange.h"
#include "server/rpc/model_statistics.h"

namespace attend {

// Metrics, the protocol's statistics and the log. Thread-safe.
class Reports : public BatchObserver, public ExchangeObserver {
 public:
  Reports(Metrics* metrics, ModelStatistics* statistics)
      : metrics_(metrics), statistics_(statistics) {}
  // Called at each change from and to a stall. Set before the first request.
  void OnStallDo(std::function<void(bool stalled)> on_stall) { on_stall_ = std::move(on_stall); }

  void OnBatchStarted(const BatchFacts& facts) override;
  void OnBatchFinished(const BatchCostFacts& facts) override;
  void OnRequestComputed(const RequestFacts& facts) override;
  void OnStalled(bool stalled) override;
  void OnExchange(const ExchangeFacts& facts, const absl::Status& status) override;

 private:
  Metrics* const metrics_;
  ModelStatistics* const statistics_;
  std::function<void(bool)> on_stall_;
};

// gRPC's own messages become lines of our log; its chatter at debug.
void RouteGrpcLog();

}  // namespace attend

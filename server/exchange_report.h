// What becomes of each exchange in metrics and logs.
#pragma once

#include "server/observe/metrics.h"
#include "server/rpc/exchange.h"

namespace attend {

// Thread-safe.
class ExchangeReport : public ExchangeObserver {
 public:
  explicit ExchangeReport(Metrics* metrics) : metrics_(metrics) {}
  void OnExchange(const ExchangeFacts& facts, const absl::Status& status) override;

 private:
  Metrics* const metrics_;
};

// gRPC's own messages become lines of our log; its chatter at debug.
void RouteGrpcLog();

}  // namespace attend

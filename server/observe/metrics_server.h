// HTTP /metrics.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "server/observe/metrics.h"

namespace prometheus {
class Exposer;
}

namespace attend {

// Answers on threads of its own: a scrape never waits for serving, nor serving for a scrape.
class MetricsServer {
 public:
  // `address` is HOST:PORT; port 0 takes any free one, an empty HOST all interfaces. UNAVAILABLE
  // naming the address when it can't be had.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                              const Metrics& metrics);
  ~MetricsServer();

  // With the real port.
  const std::string& address() const { return address_; }

 private:
  MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, std::string address,
                const Metrics& metrics);

  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string address_;
  std::shared_ptr<prometheus::Collectable> collectable_;
};

}  // namespace attend

#include "server/observe/metrics_server.h"

#include <absl/strings/str_cat.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>

namespace attend {
namespace {

// The HTTP library takes numeric addresses alone, or a port for all interfaces.
std::string ListeningPorts(const std::string& host, const std::string& port) {
  if (host == "localhost") return absl::StrCat("127.0.0.1:", port);
  return host.empty() ? port : absl::StrCat(host, ":", port);
}

}  // namespace

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, std::string address,
                             const Metrics& metrics)
    : exposer_(std::move(exposer)),
      address_(std::move(address)),
      collectable_(metrics.collectable()) {
  exposer_->RegisterCollectable(collectable_);
}

MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    const Metrics& metrics) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
  const std::string port = address.substr(colon == std::string::npos ? 0 : colon + 1);
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", ListeningPorts(host, port), "num_threads", "2",
                                 "request_timeout_ms", "5000", "keep_alive_timeout_ms", "5000"});
    const std::string bound = absl::StrCat(host, ":", exposer->GetListeningPorts().at(0));
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(exposer), bound, metrics));
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("can't serve metrics on ", address,
                     ": the address is not HOST:PORT of this machine or is in use already (",
                     error.what(), ")"));
  }
}

}  // namespace attend

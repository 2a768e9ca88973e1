#include "server/observe/metrics_server.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <netdb.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace attend {
namespace {

// The HTTP library takes numeric addresses alone, or a port for all interfaces.
std::string ListeningPorts(const std::string& host, const std::string& port) {
  if (host == "localhost") return absl::StrCat("127.0.0.1:", port);
  return host.empty() ? port : absl::StrCat(host, ":", port);
}

// Connects to HOST:PORT, an empty HOST being this machine, and hangs up.
void Knock(absl::string_view address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string name(host), port(address.substr(colon + 1));
  if (getaddrinfo(name.empty() ? nullptr : name.c_str(), port.c_str(), &hints, &found) != 0) return;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int made = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (made < 0) continue;
    connect(made, one->ai_addr, one->ai_addrlen);
    close(made);
  }
  freeaddrinfo(found);
}

}  // namespace

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, std::string address,
                             const Metrics& metrics)
    : exposer_(std::move(exposer)),
      address_(std::move(address)),
      collectable_(metrics.collectable()) {
  exposer_->RegisterCollectable(collectable_);
}

// The HTTP library's accepting thread learns that it should end when somebody connects, else only
// every two seconds.
MetricsServer::~MetricsServer() {
  std::atomic<bool> ended{false};
  std::thread knocking([&] {
    while (!ended) {
      Knock(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  exposer_.reset();
  ended = true;
  knocking.join();
}

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

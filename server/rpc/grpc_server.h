// The gRPC side of the server: address, services, health, reflection, and how it ends.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "server/rpc/exchange.h"
#include "server/rpc/serving.h"

namespace attend {

// Paths of PEM files; an empty certificate is no TLS at all. They are read again when they change.
struct TlsFiles {
  std::string certificate, key;
  std::string client_ca;  // with it, callers must show a certificate of one of these roots
};

struct GrpcServerOptions {
  std::string address = "localhost:8001";  // port 0: any free one
  TlsFiles tls = {};
  int max_connections = 4096;
  // Of requests on their way in, all connections together. Beyond it callers are read from more
  // slowly, and then calls whose bodies stall are ended. 0: a quarter of the memory. Two of the
  // largest messages at least.
  int64_t max_incoming_bytes = 0;
  int pollers = 0;  // threads that poll for calls; 0: by the number of workers
};

// Thread-safe.
class GrpcServer {
 public:
  // Listens, NOT_SERVING by health until SetServing. `serving`'s pointers and `observer` outlive
  // the server. UNAVAILABLE naming the address when it can't be had,
  // INVALID_ARGUMENT naming the file when TLS can't be set up.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           const Serving& serving,
                                                           ExchangeObserver* observer);
  // Closes every connection at once, so that a caller whose call was on its way finds the server
  // unavailable: gRPC's own shutdown would first cancel that call.
  ~GrpcServer();

  // The address with the real port.
  std::string address() const;
  // Connections closed at once because there were too many.
  int64_t refused_connections() const;
  // What health answers for the empty name and for each service.
  void SetServing(bool serving);
  // While stalled, health is NOT_SERVING whatever SetServing said.
  void SetStalled(bool stalled);
  // Calls that come from now on are not waited for; the batcher has them refused.
  void BeginDrain();
  // Whether every answer to a call from before the drain is out; false when not so at `deadline`.
  bool WaitCallsOver(Clock::time_point deadline);

 private:
  GrpcServer();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

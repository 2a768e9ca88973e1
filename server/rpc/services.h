// Which methods are served, and by which handler.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/live_calls.h"
#include "server/rpc/serving.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/unary_call.h"

namespace attend {

// What all methods tell of their calls.
struct CallBooks {
  ExchangeObserver* observer = nullptr;
  LiveCalls* live = nullptr;
  LiveStreams* streams = nullptr;
};

// The services and their methods. `serving` and the books outlive it.
class Services {
 public:
  Services(const Serving& serving, const CallBooks& books);
  ~Services();

  void Register(grpc::ServerBuilder* builder);
  // Waits for calls of every method, so many of each that a burst need not wait for a poller.
  void AcceptAll(Pollers* pollers);
  // Full names, for health.
  static std::vector<std::string> Names();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

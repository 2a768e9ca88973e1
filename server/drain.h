// How a server ends: nothing accepted is lost.
#pragma once

#include <chrono>

#include "core/mutex.h"
#include "server/batching/batcher.h"
#include "server/rpc/grpc_server.h"
#include "server/signals.h"

namespace attend {

struct DrainOptions {
  std::chrono::milliseconds delay{5000};   // still accepting, while balancers look elsewhere
  std::chrono::milliseconds grace{30000};  // to finish what was accepted
};

// Made before any other thread. A SIGTERM or SIGINT that comes before Run is not lost.
class Drain {
 public:
  Drain();

  // Waits for a signal; then NOT_SERVING, the delay, UNAVAILABLE for what comes, the answers to
  // what was accepted. The server's destruction then closes the connections. True when all of them
  // are out. When the grace period is over or a second signal comes, what is left is answered with
  // UNAVAILABLE, and the result is false.
  bool Run(const DrainOptions& options, Batcher& batcher, GrpcServer& server);

 private:
  void OnSecondSignal();

  Mutex mutex_;
  Batcher* abandonable_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  Signals signals_;
};

}  // namespace attend

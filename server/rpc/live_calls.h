// How many calls live: taken from gRPC and not yet wholly over on the wire.
#pragma once

#include <array>
#include <cstdint>

#include "core/mutex.h"
#include "server/batching/pending_request.h"

namespace attend {

// Tells the calls that came before a drain from those that come while it lasts. Thread-safe.
class LiveCalls {
 public:
  // The era that the call began in, to be given back at its end.
  int Begin() {
    MutexLock lock(&mutex_);
    ++counts_[era_];
    return era_;
  }
  void End(int era) {
    MutexLock lock(&mutex_);
    if (--counts_[era] == 0) over_.notify_all();
  }
  // Calls that begin from now on are not waited for.
  void BeginDrain() {
    MutexLock lock(&mutex_);
    era_ = 1;
  }
  // False when calls from before the drain still live at `deadline`.
  bool WaitOver(Clock::time_point deadline) {
    MutexLock lock(&mutex_);
    while (counts_[0] > 0) {
      if (over_.wait_until(mutex_, deadline) == std::cv_status::timeout) return counts_[0] == 0;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar over_;
  int era_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<int64_t, 2> counts_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace attend

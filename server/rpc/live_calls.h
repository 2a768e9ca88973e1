// How many calls live: taken from gRPC and not yet wholly over on the wire.
#pragma once

#include <cstdint>

#include "core/mutex.h"
#include "server/batching/pending_request.h"

namespace attend {

// Thread-safe.
class LiveCalls {
 public:
  void Begin() {
    MutexLock lock(&mutex_);
    ++count_;
  }
  void End() {
    MutexLock lock(&mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  // False when some still live at `deadline`.
  bool WaitNone(Clock::time_point deadline) {
    MutexLock lock(&mutex_);
    while (count_ > 0) {
      if (none_.wait_until(mutex_, deadline) == std::cv_status::timeout) return count_ == 0;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar none_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attend

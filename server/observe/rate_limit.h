// So many a second and no more.
#pragma once

#include <chrono>

#include "core/mutex.h"

namespace attend {

// Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(int per_second) : per_second_(per_second) {}

  bool Allow(std::chrono::steady_clock::time_point now) {
    MutexLock lock(&mutex_);
    if (now - start_ >= std::chrono::seconds(1)) {
      start_ = now;
      count_ = 0;
    }
    return count_++ < per_second_;
  }

 private:
  const int per_second_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point start_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attend

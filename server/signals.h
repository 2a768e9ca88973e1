// SIGTERM and SIGINT as something to wait for.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "core/mutex.h"

namespace attend {

// Made before any other thread, so that all of them leave the signals to it. Thread-safe.
class Signals {
 public:
  // `on_second` is called from a thread of this object at the second signal and every later one.
  explicit Signals(std::function<void()> on_second);
  ~Signals();

  void WaitFirst();
  // Whether a second one came within `timeout`.
  bool WaitSecond(std::chrono::milliseconds timeout);

 private:
  void Watch(const std::function<void()>& on_second);

  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace attend

#include "server/signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace attend {
namespace {

sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Signals::Signals(std::function<void()> on_second) {
  const sigset_t set = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this, on_second = std::move(on_second)] { Watch(on_second); });
}

Signals::~Signals() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  pthread_kill(watcher_.native_handle(), SIGTERM);
  watcher_.join();
}

void Signals::Watch(const std::function<void()>& on_second) {
  const sigset_t set = EndingSignals();
  while (true) {
    int signal = 0;
    sigwait(&set, &signal);
    bool second = false;
    {
      MutexLock lock(&mutex_);
      if (ending_) return;
      second = ++count_ > 1;
      changed_.notify_all();
    }
    if (second) on_second();
  }
}

void Signals::WaitFirst() {
  MutexLock lock(&mutex_);
  while (count_ < 1) changed_.wait(mutex_);
}

bool Signals::WaitSecond(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(&mutex_);
  while (count_ < 2) {
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
  }
  return count_ >= 2;
}

}  // namespace attend

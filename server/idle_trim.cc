#include "server/idle_trim.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <utility>

namespace attend {
namespace {

constexpr std::chrono::seconds kBetweenLooks{2};
constexpr int64_t kWorthAnInterruption = int64_t{64} << 20;
constexpr int64_t kLeastWorthIt = int64_t{4} << 20;

// Resident, and not in use through the allocator.
int64_t UnusedBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  const struct mallinfo2 info = mallinfo2();
  return resident * sysconf(_SC_PAGESIZE) - static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace

IdleTrim::IdleTrim(std::function<bool()> idle)
    : idle_(std::move(idle)), thread_([this] { Run(); }) {}

IdleTrim::~IdleTrim() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void IdleTrim::Run() {
  int64_t kept = UnusedBytes();  // what a trim would not give back
  int64_t worth = kWorthAnInterruption;
  MutexLock lock(&mutex_);
  while (!ending_) {
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kBetweenLooks);
    if (ending_) continue;
    const int64_t unused = UnusedBytes();
    kept = std::min(kept, unused);
    if (!idle_()) {
      worth = kWorthAnInterruption;
    } else if (unused < kept + worth) {
      worth = std::max(worth / 2, kLeastWorthIt);
    } else {
      malloc_trim(0);
      kept = UnusedBytes();
    }
  }
}

}  // namespace attend

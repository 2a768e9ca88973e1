#include "core/cpu_quota.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/cgroup.h"

namespace attend {
namespace {

std::vector<int> AllowedCpus() {
  // Larger than the kernel's mask, or the call fails.
  constexpr int kMaxCpus = 8192;
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  std::vector<int> cpus;
  if (sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

}  // namespace

int UsableCpus() { return UsableCpus("/", static_cast<int>(AllowedCpus().size())); }

int UsableCpus(const std::string& root, int affinity) {
  double cpus = affinity;
  if (const std::optional<double> quota = CgroupCpuLimit(root)) cpus = std::min(cpus, *quota);
  return std::max(1, static_cast<int>(std::floor(cpus)));
}

std::vector<int> CpusToPin(int threads) { return CpusToPin(threads, AllowedCpus()); }

std::vector<int> CpusToPin(int threads, const std::vector<int>& allowed) {
  return static_cast<int>(allowed.size()) == threads ? allowed : std::vector<int>();
}

void PinThread(std::thread& thread, int cpu) {
  const size_t size = CPU_ALLOC_SIZE(cpu + 1);
  cpu_set_t* set = CPU_ALLOC(cpu + 1);
  CPU_ZERO_S(size, set);
  CPU_SET_S(cpu, size, set);
  pthread_setaffinity_np(thread.native_handle(), size, set);
  CPU_FREE(set);
}

}  // namespace attend

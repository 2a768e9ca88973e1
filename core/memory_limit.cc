#include "core/memory_limit.h"

#include <unistd.h>

#include <algorithm>

#include "core/cgroup.h"

namespace attend {

int64_t UsableMemory() {
  return UsableMemory("/", int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE));
}

int64_t UsableMemory(const std::string& root, int64_t machine) {
  return std::min(machine, CgroupMemoryLimit(root).value_or(machine));
}

}  // namespace attend

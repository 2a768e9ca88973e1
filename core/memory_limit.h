// How much memory the process may use.
#pragma once

#include <cstdint>
#include <string>

namespace attend {

// min(cgroup limit, the machine's memory), in bytes.
int64_t UsableMemory();
// The same on a machine with `machine` bytes, with the files below `root`.
int64_t UsableMemory(const std::string& root, int64_t machine);

}  // namespace attend

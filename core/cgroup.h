// What the control groups (v1 and v2) allow this process. Files are read below `root`, "/" except
// in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attend {

// The lowest CPU bandwidth limit of this process's group and the groups above it, in CPUs.
std::optional<double> CgroupCpuLimit(const std::string& root);
// The lowest memory limit likewise, in bytes.
std::optional<int64_t> CgroupMemoryLimit(const std::string& root);

}  // namespace attend

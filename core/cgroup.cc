#include "core/cgroup.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace attend {
namespace {

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> FirstLineWords(const std::string& path) {
  const std::vector<std::string> lines = ReadLines(path);
  if (lines.empty()) return {};
  return absl::StrSplit(lines[0], ' ', absl::SkipWhitespace());
}

// The folders that may hold `controller`'s files for this process, from its own group up to the
// root. In a container the path that /proc names is often the host's and missing here; the group
// is then the root of the mount, which is always among them.
std::vector<std::string> GroupFolders(const std::string& root, const std::string& controller) {
  std::vector<std::string> folders;
  for (const std::string& line : ReadLines(root + "/proc/self/cgroup")) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool v2 = parts[1].empty();
    if (!v2 && std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) {
      continue;
    }
    const std::vector<std::string> mounts =
        v2 ? std::vector<std::string>{""}
           : std::vector<std::string>{"/" + controller, "/" + parts[1]};
    for (const std::string& mount : mounts) {
      for (std::string path = parts[2];; path.resize(path.rfind('/'))) {
        folders.push_back(absl::StrCat(root, "/sys/fs/cgroup", mount, path, "/"));
        if (path.find('/') == std::string::npos) break;
      }
    }
  }
  return folders;
}

template <typename T>
void KeepLower(std::optional<T>& lowest, T value) {
  if (value > 0 && (!lowest || value < *lowest)) lowest = value;
}

}  // namespace

std::optional<double> CgroupCpuLimit(const std::string& root) {
  std::optional<double> limit;
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    std::vector<std::string> words = FirstLineWords(folder + "cpu.max");  // "max 100000"
    if (words.empty()) {
      words = FirstLineWords(folder + "cpu.cfs_quota_us");  // -1 is none
      for (const std::string& period : FirstLineWords(folder + "cpu.cfs_period_us")) {
        words.push_back(period);
      }
    }
    double quota = 0, period = 0;
    if (words.size() == 2 && absl::SimpleAtod(words[0], &quota) &&
        absl::SimpleAtod(words[1], &period) && period > 0) {
      KeepLower(limit, quota / period);
    }
  }
  return limit;
}

std::optional<int64_t> CgroupMemoryLimit(const std::string& root) {
  // v1 says "no limit" by a number near the largest.
  constexpr int64_t kUnlimited = int64_t{1} << 60;
  std::optional<int64_t> limit;
  for (const std::string& folder : GroupFolders(root, "memory")) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"}) {
      const std::vector<std::string> words = FirstLineWords(folder + file);
      int64_t bytes = 0;
      if (words.size() == 1 && absl::SimpleAtoi(words[0], &bytes) && bytes < kUnlimited) {
        KeepLower(limit, bytes);
      }
    }
  }
  return limit;
}

}  // namespace attend

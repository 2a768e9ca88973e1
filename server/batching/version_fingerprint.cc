#include "server/batching/version_fingerprint.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace attend {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

VersionFingerprint FingerprintOf(const std::string& version_directory) {
  VersionFingerprint fingerprint;
  struct stat status {};
  if (stat(version_directory.c_str(), &status) != 0) return fingerprint;
  fingerprint.directory_inode = status.st_ino;
  const int64_t directory_changed = Nanoseconds(status.st_ctim);

  std::error_code error;
  int64_t last_change = 0;
  std::filesystem::directory_iterator it(version_directory, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    if (stat(it->path().c_str(), &status) != 0) continue;
    fingerprint.files.push_back({it->path().filename().string(), status.st_ino, status.st_size,
                                 Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim)});
    last_change = std::max(last_change, fingerprint.files.back().changed_ns);
  }
  std::sort(fingerprint.files.begin(), fingerprint.files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  fingerprint.published_by_rename = !fingerprint.files.empty() && directory_changed > last_change;
  return fingerprint;
}

}  // namespace attend

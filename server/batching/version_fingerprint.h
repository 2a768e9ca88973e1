// What a model's version directory looks like from outside, to tell when it has changed and whether
// somebody may still be writing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

struct VersionFingerprint {
  struct File {
    std::string name;
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;  // of the inode: also by a rename
    bool operator==(const File&) const = default;
  };
  std::vector<File> files;  // by name
  uint64_t directory_inode = 0;
  // The directory was moved here after its last file was written, so it is complete.
  bool published_by_rename = false;

  bool operator==(const VersionFingerprint&) const = default;
};

// Of a directory that can't be read it has no files.
VersionFingerprint FingerprintOf(const std::string& version_directory);

}  // namespace attend

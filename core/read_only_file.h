// A regular file read at offsets. By pread, never mapped: a file cut short under us is an error,
// not a SIGBUS.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace attend {

// Owns the descriptor. Moves, does not copy. Read may be called from any thread.
class ReadOnlyFile {
 public:
  // NOT_FOUND when there is no such file; INVALID_ARGUMENT, with the system's reason, when it can't
  // be opened or is no regular file.
  static absl::StatusOr<ReadOnlyFile> Open(const std::string& path);

  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();

  // In bytes, when it was opened.
  uint64_t size() const { return size_; }
  // Fills `target` with the bytes from `offset` on. INVALID_ARGUMENT when the file ends before.
  absl::Status Read(uint64_t offset, std::span<std::byte> target) const;

 private:
  ReadOnlyFile(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}

  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// The whole file as text. INVALID_ARGUMENT also when it is larger than `limit` bytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit);

}  // namespace attend

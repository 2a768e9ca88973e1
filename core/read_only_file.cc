#include "core/read_only_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace attend {

absl::StatusOr<ReadOnlyFile> ReadOnlyFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const std::string reason = std::strerror(errno);
    if (errno == ENOENT) return absl::NotFoundError("there is no such file");
    return absl::InvalidArgumentError(absl::StrCat("can't be opened: ", reason));
  }
  struct stat status;
  const bool known = fstat(descriptor, &status) == 0;
  ReadOnlyFile file(descriptor, known ? static_cast<uint64_t>(status.st_size) : 0);
  if (!known || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("is no regular file");
  }
  return file;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status ReadOnlyFile::Read(uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t count =
        pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::InvalidArgumentError(absl::StrCat("can't be read: ", std::strerror(errno)));
    }
    if (count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("was cut short while it was read: it ends at byte ", offset, ", ",
                       target.size(), " bytes early"));
    }
    offset += static_cast<uint64_t>(count);
    target = target.subspan(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit) {
  absl::StatusOr<ReadOnlyFile> file = ReadOnlyFile::Open(path);
  if (!file.ok()) return file.status();
  if (file->size() > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds ", file->size(), " bytes, expected at most ", limit));
  }
  std::string text(file->size(), '\0');
  absl::Status read = file->Read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (!read.ok()) return read;
  return text;
}

}  // namespace attend

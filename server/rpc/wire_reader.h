// Protobuf's wire format read where it lies, over the slices that a message arrived in.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace attend {

using Bytes = std::span<const uint8_t>;

// Bytes in consecutive pieces that somebody else owns and keeps. Cheap to copy, and a copy reads on
// independently of the original.
class ByteRange {
 public:
  ByteRange() = default;
  // `pieces` must outlive the range and its copies.
  explicit ByteRange(std::span<const Bytes> pieces);

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Moves to `destination` the next size bytes; false, and nothing moved, when there are fewer.
  bool Read(void* destination, uint64_t size);
  bool Skip(uint64_t size);
  // Splits off the next `size` bytes; false when there are fewer.
  bool Split(uint64_t size, ByteRange* front);
  // The bytes at hand without crossing into the next piece; empty only at the end.
  Bytes front() const;
  // Protobuf's base-128 integer; false when it is cut short or longer than ten bytes.
  bool ReadVarint(uint64_t* value);

 private:
  const Bytes* piece_ = nullptr;  // not used when size_ is 0
  uint64_t offset_ = 0;           // in *piece_, always below its size
  uint64_t size_ = 0;

  void Advance(uint64_t size);
};

// Keeps bytes that had to be put together because they did not lie together.
class ByteArena {
 public:
  // The range is valid as long as the arena.
  ByteRange Keep(std::vector<uint8_t> bytes);

 private:
  struct Kept {
    std::vector<uint8_t> bytes;
    Bytes view;
  };
  std::deque<Kept> kept_;
};

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;  // also the value of the fixed types
  ByteRange bytes;      // of kBytes
  ByteRange whole;      // with its tag
};

// Walks over the fields of one message.
class WireReader {
 public:
  // `message` names what is read, for errors.
  WireReader(ByteRange bytes, absl::string_view message) : bytes_(bytes), message_(message) {}

  // False at the end and at an error. A group (deprecated, never in our contracts), a field number
  // of 0 and a value that is cut short are errors.
  bool Next(WireField* field);
  // INVALID_ARGUMENT when the walk ended early.
  const absl::Status& status() const { return status_; }

 private:
  bool ReadValue(WireField* field);
  bool Fail(absl::string_view why);

  ByteRange bytes_;
  absl::string_view message_;
  absl::Status status_;
};

// Copies a string field; INVALID_ARGUMENT naming `field` when it is above `limit` bytes or is not
// UTF-8.
absl::StatusOr<std::string> ReadString(ByteRange bytes, absl::string_view field, uint64_t limit);
// Appends the integers of a repeated integer field, packed or not.
absl::Status ReadIntegers(const WireField& field, absl::string_view name, size_t limit,
                          std::vector<int64_t>* integers);

}  // namespace attend

#include "server/rpc/wire_reader.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "server/rpc/invalid_field.h"
#include "server/rpc/utf8.h"

namespace attend {

ByteRange::ByteRange(std::span<const Bytes> pieces) {
  for (const Bytes& piece : pieces) size_ += piece.size();
  piece_ = pieces.data();
  while (size_ > 0 && piece_->empty()) ++piece_;
}

Bytes ByteRange::front() const {
  if (size_ == 0) return {};
  return piece_->subspan(offset_, std::min<uint64_t>(size_, piece_->size() - offset_));
}

// Only within what is left: the piece after the last is never looked at.
void ByteRange::Advance(uint64_t size) {
  size_ -= size;
  offset_ += size;
  while (size_ > 0 && offset_ >= piece_->size()) {
    offset_ -= piece_->size();
    ++piece_;
  }
}

bool ByteRange::Read(void* destination, uint64_t size) {
  if (size > size_) return false;
  auto* to = static_cast<uint8_t*>(destination);
  while (size > 0) {
    const Bytes at_hand = front();
    const uint64_t count = std::min<uint64_t>(size, at_hand.size());
    std::memcpy(to, at_hand.data(), count);
    to += count;
    size -= count;
    Advance(count);
  }
  return true;
}

bool ByteRange::Skip(uint64_t size) {
  if (size > size_) return false;
  Advance(size);
  return true;
}

bool ByteRange::Split(uint64_t size, ByteRange* front) {
  if (size > size_) return false;
  *front = *this;
  front->size_ = size;
  Advance(size);
  return true;
}

bool ByteRange::ReadVarint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (size_ == 0) return false;
    const uint8_t byte = (*piece_)[offset_];
    Advance(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

ByteRange ByteArena::Keep(std::vector<uint8_t> bytes) {
  Kept& kept = kept_.emplace_back();
  kept.bytes = std::move(bytes);
  kept.view = kept.bytes;
  return ByteRange(std::span(&kept.view, 1));
}

bool WireReader::Next(WireField* field) {
  if (bytes_.empty() || !status_.ok()) return false;
  ByteRange start = bytes_;
  uint64_t tag = 0;
  if (!bytes_.ReadVarint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) {
    return Fail("a field's tag is broken");
  }
  field->number = static_cast<uint32_t>(tag >> 3);
  field->type = static_cast<WireType>(tag & 7);
  return ReadValue(field) && start.Split(start.size() - bytes_.size(), &field->whole);
}

bool WireReader::ReadValue(WireField* field) {
  field->varint = 0;
  switch (field->type) {
    case WireType::kVarint:
      return bytes_.ReadVarint(&field->varint) || Fail("an integer is cut short");
    case WireType::kFixed64:
      return bytes_.Read(&field->varint, 8) || Fail("a 64 bit value is cut short");
    case WireType::kFixed32:
      return bytes_.Read(&field->varint, 4) || Fail("a 32 bit value is cut short");
    case WireType::kBytes: {
      uint64_t size = 0;
      return (bytes_.ReadVarint(&size) && bytes_.Split(size, &field->bytes)) ||
             Fail(absl::StrCat("field ", field->number, " is cut short"));
    }
  }
  return Fail(absl::StrCat("field ", field->number, " has an unknown wire type"));
}

bool WireReader::Fail(absl::string_view why) {
  status_ =
      absl::InvalidArgumentError(absl::StrCat(message_, ": not a valid protobuf message: ", why));
  return false;
}

absl::StatusOr<std::string> ReadString(ByteRange bytes, absl::string_view field, uint64_t limit) {
  if (bytes.size() > limit) {
    return InvalidField(field, bytes.size(), " bytes, at most ", limit, " are allowed");
  }
  std::string text(bytes.size(), '\0');
  bytes.Read(text.data(), text.size());
  if (!IsUtf8(text)) return InvalidField(field, "not UTF-8");
  return text;
}

absl::Status ReadIntegers(const WireField& field, absl::string_view name, size_t limit,
                          std::vector<int64_t>* integers) {
  if (field.type == WireType::kVarint) {
    integers->push_back(static_cast<int64_t>(field.varint));
  } else if (field.type != WireType::kBytes) {
    return InvalidField(name, "sent with a wire type that is not this field's");
  }
  ByteRange packed = field.bytes;
  for (uint64_t value; field.type == WireType::kBytes && !packed.empty();) {
    if (!packed.ReadVarint(&value)) return InvalidField(name, "an integer is cut short");
    integers->push_back(static_cast<int64_t>(value));
    if (integers->size() > limit) break;
  }
  if (integers->size() > limit) return InvalidField(name, "more than ", limit, " numbers");
  return absl::OkStatus();
}

}  // namespace attend

#include "server/rpc/body.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/message_lite.h>

#include <utility>

namespace attend {
namespace {

// Below this a copy costs less than one more slice.
constexpr int64_t kCopyBelow = 4096;

grpc::Slice SliceOf(FloatBuffer floats) {
  auto* owner = new FloatBuffer(std::move(floats));
  return grpc::Slice(
      owner->data(), owner->size() * sizeof(float),
      [](void* buffer) { delete static_cast<FloatBuffer*>(buffer); }, owner);
}

}  // namespace

Body::Body(const grpc::ByteBuffer& buffer) {
  if (!buffer.Valid() || !buffer.Dump(&slices_).ok()) slices_.clear();
  pieces_.reserve(slices_.size());
  for (const grpc::Slice& slice : slices_) pieces_.emplace_back(slice.begin(), slice.size());
}

uint64_t MessageWriter::VarintSize(uint64_t value) {
  uint64_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void MessageWriter::RawVarint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) pending_.push_back(static_cast<char>(value | 0x80));
  pending_.push_back(static_cast<char>(value));
}

void MessageWriter::Varint(uint32_t field, uint64_t value) {
  if (value == 0) return;
  RawVarint(uint64_t{field} << 3);
  RawVarint(value);
}

void MessageWriter::String(uint32_t field, absl::string_view value) {
  if (value.empty()) return;
  Begin(field, value.size());
  pending_.append(value.data(), value.size());
}

void MessageWriter::Message(uint32_t field, const google::protobuf::MessageLite& message) {
  Begin(field, message.ByteSizeLong());
  message.AppendToString(&pending_);
}

void MessageWriter::Append(const google::protobuf::MessageLite& message) {
  message.AppendToString(&pending_);
}

void MessageWriter::Bytes(const grpc::ByteBuffer& bytes) {
  Flush();
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return;
  for (grpc::Slice& slice : slices) slices_.push_back(std::move(slice));
}

void MessageWriter::Begin(uint32_t field, uint64_t size) {
  RawVarint(uint64_t{field} << 3 | static_cast<uint64_t>(WireType::kBytes));
  RawVarint(size);
}

void MessageWriter::Floats(FloatBuffer floats, ElementType type) {
  const int64_t size = floats.size() * SizeOf(type);
  if (size < kCopyBelow) {
    const size_t end = pending_.size();
    pending_.resize(end + size);
    EncodeFloats(type, floats.span(), reinterpret_cast<uint8_t*>(pending_.data() + end));
    return;
  }
  Flush();
  if (type == ElementType::kF32) {
    slices_.push_back(SliceOf(std::move(floats)));
    return;
  }
  grpc::Slice encoded(size);
  EncodeFloats(type, floats.span(), const_cast<uint8_t*>(encoded.begin()));
  slices_.push_back(std::move(encoded));
}

void MessageWriter::Flush() {
  if (pending_.empty()) return;
  slices_.emplace_back(pending_);
  pending_.clear();
}

grpc::ByteBuffer MessageWriter::Take() {
  Flush();
  return grpc::ByteBuffer(slices_.data(), slices_.size());
}

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status Parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message) {
  grpc::Slice slice;
  if (buffer.Valid() && buffer.DumpToSingleSlice(&slice).ok() &&
      message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(message->GetTypeName(), ": not a valid protobuf message"));
}

}  // namespace attend

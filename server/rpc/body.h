// A message's bytes as gRPC hands them over and takes them.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "core/float_buffer.h"
#include "server/rpc/element_type.h"
#include "server/rpc/wire_reader.h"

namespace google::protobuf {
class MessageLite;
}

namespace attend {

// Views of a received body's slices. Keeps them alive; range() is valid as long as this is.
class Body {
 public:
  explicit Body(const grpc::ByteBuffer& buffer);
  ByteRange range() const { return ByteRange(pieces_); }

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<Bytes> pieces_;
};

// Builds a message by hand, so that a tensor's floats leave as a slice that owns their buffer.
class MessageWriter {
 public:
  void Varint(uint32_t field, uint64_t value);           // left out when 0, as proto3 does
  void String(uint32_t field, absl::string_view value);  // left out when empty
  void Message(uint32_t field, const google::protobuf::MessageLite& message);
  void Append(const google::protobuf::MessageLite& message);  // its fields become this message's
  void RawVarint(uint64_t value);                             // without a key
  // The key and size of a length-delimited field whose `size` bytes come next.
  void Begin(uint32_t field, uint64_t size);
  // The floats as elements of `type`; F32 is handed over without a copy unless it is small.
  void Floats(FloatBuffer floats, ElementType type);
  void Bytes(const grpc::ByteBuffer& bytes);  // without a copy
  grpc::ByteBuffer Take();

  static uint64_t VarintSize(uint64_t value);

 private:
  void Flush();

  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

// The generated classes, for the small messages.
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);
// INVALID_ARGUMENT naming the message.
absl::Status Parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message);

}  // namespace attend

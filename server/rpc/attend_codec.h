// attend.v1's large messages by hand: AttendRequest in, AttendResponse out.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "server/batching/pending_request.h"
#include "server/rpc/element_type.h"
#include "server/rpc/encoded_sequence.h"
#include "server/rpc/wire_reader.h"

namespace attend {

// An AttendRequest read but for its tensors' bytes, which stay where they are.
struct AttendRequestView {
  std::string model;
  std::string version;
  std::string request_id;
  EncodedSequence sequence;
  uint32_t priority = 0;
  ElementType answer_type = ElementType::kF32;
};

// Reads what protobuf's own parser reads, but a tensor given twice is an error, not a merge.
// `*view` is filled as far as the message could be read, its request_id if that came before the
// error. INVALID_ARGUMENT naming the field. The view points into `bytes`, and for `values` that
// came in pieces into `*arena`; both must outlive it.
absl::Status ReadAttendRequest(ByteRange bytes, ByteArena* arena, AttendRequestView* view);

struct AttendAnswerHeader {
  std::string request_id;
  const ServedModel& model;
  int64_t num_items = 0;
  ElementType type = ElementType::kF32;
};

// An AttendResponse; the floats leave without a copy when they stay float32.
grpc::ByteBuffer WriteAttendResponse(const AttendAnswerHeader& header, Answer answer);
// On streams: the response that says why this request failed.
grpc::ByteBuffer WriteAttendError(const std::string& request_id, const absl::Status& status);

}  // namespace attend

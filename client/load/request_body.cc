#include "client/load/request_body.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <random>
#include <utility>

#include "kserve/grpc_service.pb.h"

namespace attend::client {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// The tag and length of a length-delimited field.
void AppendFieldHead(int field, uint32_t length, std::string* out) {
  uint8_t head[10];
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), head);
  end = CodedOutputStream::WriteVarint32ToArray(length, end);
  out->append(reinterpret_cast<const char*>(head), end - head);
}

std::string SharedPart(Protocol protocol, const v1::AttendRequest& shared) {
  if (protocol == Protocol::kAttend) return shared.SerializeAsString();
  inference::ModelInferRequest request;
  request.set_model_name(shared.model());
  request.set_model_version(shared.version());
  if (shared.causal()) (*request.mutable_parameters())["causal"].set_bool_param(true);
  return request.SerializeAsString();
}

}  // namespace

RequestBodies::RequestBodies(Protocol protocol, const v1::AttendRequest& shared,
                             const BodyNumbers& numbers)
    : protocol_(protocol),
      d_f_(numbers.d_f),
      shared_(SharedPart(protocol, shared)),
      numbers_(numbers.d_f * numbers.longest) {
  std::mt19937_64 random(numbers.seed);
  for (float& number : numbers_) {
    number = static_cast<float>(static_cast<int64_t>(random() >> 40) - (1 << 23)) * 0x1p-23f;
  }
}

grpc::ByteBuffer RequestBodies::Body(int64_t items, uint32_t priority) const {
  const uint32_t bytes = static_cast<uint32_t>(items * d_f_ * sizeof(float));
  const std::string head = protocol_ == Protocol::kOip ? OipHead(items, priority, bytes)
                                                       : AttendHead(items, priority, bytes);
  const grpc::Slice slices[] = {grpc::Slice(head),
                                grpc::Slice(numbers_.data(), bytes, grpc::Slice::STATIC_SLICE)};
  return grpc::ByteBuffer(slices, 2);
}

// Fields may come in any order and the last of a kind wins, so the numbers can close the body.
std::string RequestBodies::AttendHead(int64_t items, uint32_t priority, uint32_t bytes) const {
  v1::Tensor shape;
  shape.set_dtype("F32");
  shape.add_shape(items);
  shape.add_shape(d_f_);
  std::string tensor = shape.SerializeAsString();
  AppendFieldHead(v1::Tensor::kDataFieldNumber, bytes, &tensor);
  v1::AttendRequest small;
  small.set_priority(priority);
  std::string head = shared_ + small.SerializeAsString();
  AppendFieldHead(v1::AttendRequest::kItemsFieldNumber,
                  static_cast<uint32_t>(tensor.size()) + bytes, &head);
  return head + tensor;
}

std::string RequestBodies::OipHead(int64_t items, uint32_t priority, uint32_t bytes) const {
  inference::ModelInferRequest small;
  if (priority > 0) (*small.mutable_parameters())["priority"].set_uint64_param(priority);
  auto* input = small.add_inputs();
  input->set_name("items");
  input->set_datatype("FP32");
  input->add_shape(items);
  input->add_shape(d_f_);
  std::string head = shared_ + small.SerializeAsString();
  AppendFieldHead(inference::ModelInferRequest::kRawInputContentsFieldNumber, bytes, &head);
  return head;
}

bool RequestBodies::ReadAnswer(grpc::ByteBuffer* body, LoadReply* reply) const {
  grpc::ProtoBufferReader reader(body);
  if (!reader.status().ok()) return false;
  CodedInputStream in(&reader);
  while (const uint32_t tag = in.ReadTag()) {
    if (protocol_ == Protocol::kOip ||
        WireFormatLite::GetTagFieldNumber(tag) != v1::AttendResponse::kTimingFieldNumber) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t length;
    std::string bytes;
    v1::Timing timing;
    if (!in.ReadVarint32(&length) || !in.ReadString(&bytes, static_cast<int>(length)) ||
        !timing.ParseFromString(bytes)) {
      return false;
    }
    reply->timing = {.queue = std::chrono::microseconds(timing.queue_us()),
                     .compute = std::chrono::microseconds(timing.compute_us())};
  }
  return in.ConsumedEntireMessage();
}

}  // namespace attend::client

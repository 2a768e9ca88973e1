#include "server/rpc/attend_codec.h"

#include <absl/strings/str_cat.h>

#include <array>
#include <utility>

#include "attend/v1/attend.pb.h"
#include "server/rpc/body.h"
#include "server/rpc/invalid_field.h"
#include "server/rpc/status_codec.h"

namespace attend {
namespace {

using v1::AttendRequest;
using v1::AttendResponse;
using v1::Tensor;
using v1::Timing;

constexpr uint64_t kMaxTextBytes = 256;
constexpr size_t kMaxRank = 8;

absl::Status Expect(const WireField& field, WireType type, absl::string_view name) {
  if (field.type == type) return absl::OkStatus();
  return InvalidField(name, "sent with a wire type that is not this field's");
}

absl::Status ReadText(const WireField& field, absl::string_view name, std::string* text) {
  if (auto status = Expect(field, WireType::kBytes, name); !status.ok()) return status;
  auto read = ReadString(field.bytes, name, kMaxTextBytes);
  if (!read.ok()) return read.status();
  *text = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadNumber(const WireField& field, absl::string_view name, uint64_t* number) {
  *number = field.varint;
  return Expect(field, WireType::kVarint, name);
}

// A Tensor as far as its message says; its elements are where they were sent.
struct TensorFields {
  std::string dtype;
  std::vector<int64_t> shape;
  ByteRange data;
  ByteRange values;               // in one packed run, what everybody sends ...
  std::vector<uint8_t> gathered;  // ... or put together from several
};

void Append(ByteRange bytes, std::vector<uint8_t>* to) {
  const size_t end = to->size();
  to->resize(end + bytes.size());
  bytes.Read(to->data() + end, bytes.size());
}

absl::Status ReadValues(const WireField& field, absl::string_view name, TensorFields* tensor) {
  const bool packed = field.type == WireType::kBytes;
  if (!packed && field.type != WireType::kFixed32) return Expect(field, WireType::kBytes, name);
  if (packed && field.bytes.size() % sizeof(float) != 0) {
    return InvalidField(name, "values: the last one is cut short");
  }
  if (packed && tensor->values.empty() && tensor->gathered.empty()) {
    tensor->values = field.bytes;
    return absl::OkStatus();
  }
  Append(std::exchange(tensor->values, ByteRange()), &tensor->gathered);
  const auto single = static_cast<uint32_t>(field.varint);
  const Bytes piece(reinterpret_cast<const uint8_t*>(&single), sizeof(single));
  Append(packed ? field.bytes : ByteRange(std::span(&piece, 1)), &tensor->gathered);
  return absl::OkStatus();
}

absl::Status ReadTensorFields(ByteRange bytes, absl::string_view name, TensorFields* tensor) {
  WireReader reader(bytes, name);
  WireField field;
  absl::Status status;
  while (status.ok() && reader.Next(&field)) {
    switch (field.number) {
      case Tensor::kDtypeFieldNumber:
        status = ReadText(field, absl::StrCat(name, ".dtype"), &tensor->dtype);
        break;
      case Tensor::kShapeFieldNumber:
        status = ReadIntegers(field, absl::StrCat(name, ".shape"), kMaxRank, &tensor->shape);
        break;
      case Tensor::kDataFieldNumber:
        status = Expect(field, WireType::kBytes, absl::StrCat(name, ".data"));
        tensor->data = field.bytes;
        break;
      case Tensor::kValuesFieldNumber:
        status = ReadValues(field, name, tensor);
        break;
    }
  }
  status.Update(reader.status());
  return status;
}

// A mask whose elements came as numbers: each 0 or 1.
absl::StatusOr<std::vector<uint8_t>> MaskOfValues(ByteRange values, absl::string_view name) {
  std::vector<uint8_t> mask;
  mask.reserve(values.size() / sizeof(float));
  for (float value = 0; values.Read(&value, sizeof(value));) {
    if (value != 0 && value != 1) {
      return InvalidField(name, "values: element ", mask.size(), " is ", value,
                          "; a BOOL is 0 or 1");
    }
    mask.push_back(value != 0);
  }
  return mask;
}

absl::Status TakeValues(bool mask, absl::string_view name, ByteArena* arena, TensorFields* fields,
                        EncodedTensor* tensor) {
  if (!fields->data.empty()) {
    return InvalidField(name, "both data and values are set; send one of them");
  }
  if (!fields->gathered.empty()) fields->values = arena->Keep(std::move(fields->gathered));
  tensor->bytes = fields->values;
  const bool as_bool = mask && (fields->dtype.empty() || tensor->type == ElementType::kBool);
  if (as_bool) {
    auto bytes = MaskOfValues(fields->values, name);
    if (!bytes.ok()) return bytes.status();
    tensor->type = ElementType::kBool;
    tensor->bytes = arena->Keep(*std::move(bytes));
  } else if (tensor->type != ElementType::kF32) {
    return InvalidField(name, "values are float32, but dtype is \"", fields->dtype,
                        "\"; leave dtype empty, or send data");
  }
  return absl::OkStatus();
}

absl::Status ReadTensor(const WireField& field, absl::string_view name, ByteArena* arena,
                        EncodedTensor* tensor) {
  if (auto status = Expect(field, WireType::kBytes, name); !status.ok()) return status;
  if (tensor->present) return InvalidField(name, "given twice");
  TensorFields fields;
  if (auto status = ReadTensorFields(field.bytes, name, &fields); !status.ok()) return status;
  auto type = ParseElementType(fields.dtype, absl::StrCat(name, ".dtype"));
  if (!type.ok()) return type.status();
  tensor->present = true;
  tensor->type = *type;
  tensor->shape = std::move(fields.shape);
  tensor->bytes = fields.data;
  if (!fields.values.empty() || !fields.gathered.empty()) {
    const bool mask = name == "key_mask" || name == "attention_mask";
    auto status = TakeValues(mask, name, arena, &fields, tensor);
    if (!status.ok()) return status;
  }
  return CheckBytes(*tensor, name);
}

absl::Status ReadWant(const WireField& field, EncodedSequence* sequence, bool* any) {
  std::vector<int64_t> wanted;
  auto status = ReadIntegers(field, "want", 64, &wanted);
  if (!status.ok()) return status;
  for (const int64_t output : wanted) {
    if (!*any) sequence->want_values = false;
    *any = true;
    switch (output) {
      case v1::VALUES:
        sequence->want_values = true;
        break;
      case v1::SCORES:
        sequence->want_scores = true;
        break;
      case v1::WEIGHTS:
        sequence->want_weights = true;
        break;
      default:
        return InvalidField("want", "unknown output ", output,
                            "; known are VALUES = 0, SCORES = 1, WEIGHTS = 2");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadAnswerType(const WireField& field, ElementType* type) {
  std::string name;
  if (auto status = ReadText(field, "answer_dtype", &name); !status.ok()) return status;
  auto parsed = ParseElementType(name, "answer_dtype");
  if (!parsed.ok()) return parsed.status();
  if (*parsed == ElementType::kBool) {
    return InvalidField("answer_dtype", "\"BOOL\"; use \"F32\", \"F16\", \"BF16\" or \"F64\"");
  }
  *type = *parsed;
  return absl::OkStatus();
}

absl::Status ReadField(const WireField& field, ByteArena* arena, bool* any_want,
                       AttendRequestView* view) {
  EncodedSequence& sequence = view->sequence;
  uint64_t number = 0;
  absl::Status status;
  switch (field.number) {
    case AttendRequest::kModelFieldNumber:
      return ReadText(field, "model", &view->model);
    case AttendRequest::kVersionFieldNumber:
      return ReadText(field, "version", &view->version);
    case AttendRequest::kRequestIdFieldNumber:
      return ReadText(field, "request_id", &view->request_id);
    case AttendRequest::kItemsFieldNumber:
      return ReadTensor(field, "items", arena, &sequence.items);
    case AttendRequest::kKeyMaskFieldNumber:
      return ReadTensor(field, "key_mask", arena, &sequence.key_mask);
    case AttendRequest::kAttentionMaskFieldNumber:
      return ReadTensor(field, "attention_mask", arena, &sequence.attention_mask);
    case AttendRequest::kAttentionBiasFieldNumber:
      return ReadTensor(field, "attention_bias", arena, &sequence.attention_bias);
    case AttendRequest::kCausalFieldNumber:
      status = ReadNumber(field, "causal", &number);
      sequence.causal = number != 0;
      return status;
    case AttendRequest::kWantFieldNumber:
      return ReadWant(field, &sequence, any_want);
    case AttendRequest::kPriorityFieldNumber:
      status = ReadNumber(field, "priority", &number);
      view->priority = static_cast<uint32_t>(number);
      return status;
    case AttendRequest::kAnswerDtypeFieldNumber:
      return ReadAnswerType(field, &view->answer_type);
  }
  return status;
}

// A result tensor with the bytes of its header's message and of the whole.
struct TensorToWrite {
  uint32_t field;
  std::vector<int64_t> shape;
  FloatBuffer floats;

  int64_t DataBytes(ElementType type) const { return floats.size() * SizeOf(type); }
};

uint64_t ShapeBytes(const TensorToWrite& tensor) {
  uint64_t bytes = 0;
  for (const int64_t size : tensor.shape) bytes += MessageWriter::VarintSize(size);
  return bytes;
}

// One byte of key each: every field number is below 16.
uint64_t FieldBytes(uint64_t size) { return 1 + MessageWriter::VarintSize(size) + size; }

void WriteTensor(TensorToWrite tensor, ElementType type, MessageWriter* writer) {
  const uint64_t shape = ShapeBytes(tensor);
  const uint64_t data = tensor.DataBytes(type);
  writer->Begin(tensor.field,
                FieldBytes(NameOf(type).size()) + FieldBytes(shape) + FieldBytes(data));
  writer->String(Tensor::kDtypeFieldNumber, NameOf(type));
  writer->Begin(Tensor::kShapeFieldNumber, shape);
  for (const int64_t size : tensor.shape) writer->RawVarint(size);
  writer->Begin(Tensor::kDataFieldNumber, data);
  writer->Floats(std::move(tensor.floats), type);
}

void WriteTiming(const RequestTiming& timing, MessageWriter* writer) {
  Timing message;
  message.set_queue_us(timing.queue.count());
  message.set_compute_us(timing.compute.count());
  message.set_batch_requests(static_cast<uint32_t>(timing.batch_requests));
  message.set_batch_items(timing.batch_items);
  writer->Message(AttendResponse::kTimingFieldNumber, message);
}

}  // namespace

absl::Status ReadAttendRequest(ByteRange bytes, ByteArena* arena, AttendRequestView* view) {
  WireReader reader(bytes, "AttendRequest");
  WireField field;
  bool any_want = false;
  absl::Status status;
  while (status.ok() && reader.Next(&field)) status = ReadField(field, arena, &any_want, view);
  status.Update(reader.status());
  return status;
}

grpc::ByteBuffer WriteAttendResponse(const AttendAnswerHeader& header, Answer answer) {
  const ModelInfo& info = header.model.model->info();
  const int64_t n = header.num_items;
  const std::vector<int64_t> pairs = {info.num_heads, n, n};
  MessageWriter writer;
  writer.String(AttendResponse::kRequestIdFieldNumber, header.request_id);
  writer.String(AttendResponse::kModelFieldNumber, header.model.name);
  writer.String(AttendResponse::kVersionFieldNumber, absl::StrCat(header.model.version));
  // Before the tensors, so that it shares a slice with the names: fields may come in any order.
  WriteTiming(answer.timing, &writer);
  std::array<TensorToWrite, 3> tensors = {
      {{AttendResponse::kValuesFieldNumber, {n, info.d_out}, std::move(answer.output.values)},
       {AttendResponse::kScoresFieldNumber, pairs, std::move(answer.output.scores)},
       {AttendResponse::kWeightsFieldNumber, pairs, std::move(answer.output.weights)}}};
  for (TensorToWrite& tensor : tensors) {
    if (!tensor.floats.empty()) WriteTensor(std::move(tensor), header.type, &writer);
  }
  return writer.Take();
}

grpc::ByteBuffer WriteAttendError(const std::string& request_id, const absl::Status& status) {
  AttendResponse response;
  response.set_request_id(request_id);
  *response.mutable_error() = ToRpcStatus(status);
  return Serialize(response);
}

}  // namespace attend

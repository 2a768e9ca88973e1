#include "server/rpc/oip_codec.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "server/rpc/body.h"
#include "server/rpc/invalid_field.h"

namespace attend {
namespace {

using inference::InferParameter;
using inference::InferTensorContents;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using InputTensor = ModelInferRequest::InferInputTensor;
using OutputTensor = ModelInferRequest::InferRequestedOutputTensor;

struct TypeName {
  ElementType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {{ElementType::kF32, "FP32"},
                                   {ElementType::kF16, "FP16"},
                                   {ElementType::kBF16, "BF16"},
                                   {ElementType::kF64, "FP64"},
                                   {ElementType::kBool, "BOOL"}};

struct OutputName {
  OutputKind kind;
  const char* name;
};
constexpr OutputName kOutputNames[] = {{OutputKind::kValues, "values"},
                                       {OutputKind::kScores, "scores"},
                                       {OutputKind::kWeights, "weights"}};

absl::string_view NameOf(OutputKind kind) { return kOutputNames[static_cast<int>(kind)].name; }

absl::StatusOr<ElementType> ParseOipType(const std::string& name, absl::string_view tensor) {
  for (const TypeName& row : kTypeNames) {
    if (name == row.name) return row.type;
  }
  return InvalidField(tensor, "datatype \"", name,
                      "\"; use FP32, FP16, BF16 or FP64, and BOOL for masks");
}

template <typename Numbers>
ByteRange KeepNumbers(const Numbers& numbers, ByteArena* arena) {
  const auto* begin = reinterpret_cast<const uint8_t*>(numbers.data());
  return arena->Keep({begin, begin + numbers.size() * sizeof(*numbers.data())});
}

// Typed contents of the datatype's own kind, as consecutive bytes. FP16 and BF16 have none.
absl::StatusOr<ByteRange> TypedBytes(const InputTensor& tensor, ByteArena* arena) {
  const InferTensorContents& contents = tensor.contents();
  const std::string& type = tensor.datatype();
  if (type == "FP32") return KeepNumbers(contents.fp32_contents(), arena);
  if (type == "FP64") return KeepNumbers(contents.fp64_contents(), arena);
  if (type == "BOOL") return KeepNumbers(contents.bool_contents(), arena);
  if (type == "INT32") return KeepNumbers(contents.int_contents(), arena);
  return InvalidField(tensor.name(), "datatype ", type,
                      " has no typed contents; send it in raw_input_contents");
}

// Shape, type and bytes of each input, by name.
class Inputs {
 public:
  static absl::StatusOr<Inputs> Read(const InferRequest& request, ByteArena* arena) {
    Inputs inputs;
    const auto& tensors = request.header.inputs();
    if (!request.raw.empty() && request.raw.size() != static_cast<size_t>(tensors.size())) {
      return InvalidField("raw_input_contents", request.raw.size(), " entries for ", tensors.size(),
                          " inputs; send one an input, in the inputs' order");
    }
    for (int i = 0; i < tensors.size(); ++i) {
      auto status = inputs.Add(tensors[i], request.raw.empty() ? nullptr : &request.raw[i], arena);
      if (!status.ok()) return status;
    }
    if (!inputs.items.present) return InvalidField("items", "the input is missing");
    return inputs;
  }

  EncodedTensor items, key_mask, attention_mask, attention_bias, lengths;

 private:
  EncodedTensor* Find(const std::string& name) {
    if (name == "items") return &items;
    if (name == "key_mask") return &key_mask;
    if (name == "attention_mask") return &attention_mask;
    if (name == "attention_bias") return &attention_bias;
    return name == "lengths" ? &lengths : nullptr;
  }

  absl::Status Add(const InputTensor& tensor, const ByteRange* raw, ByteArena* arena) {
    EncodedTensor* const input = Find(tensor.name());
    if (input == nullptr) {
      return InvalidField(tensor.name(),
                          "no such input; there are items, lengths, key_mask, attention_mask and "
                          "attention_bias");
    }
    if (input->present) return InvalidField(tensor.name(), "the input is given twice");
    if (tensor.parameters().count("shared_memory_region") > 0) {
      return InvalidField(tensor.name(), "shared memory is not supported; send the contents");
    }
    if (raw != nullptr && tensor.has_contents()) {
      return InvalidField(tensor.name(), "contents and raw_input_contents may not be mixed");
    }
    input->present = true;
    input->shape.assign(tensor.shape().begin(), tensor.shape().end());
    if (input == &lengths) {
      if (tensor.datatype() != "INT32") {
        return InvalidField("lengths", "datatype ", tensor.datatype(), ", expected INT32");
      }
    } else {
      auto type = ParseOipType(tensor.datatype(), tensor.name());
      if (!type.ok()) return type.status();
      input->type = *type;
    }
    if (raw != nullptr) {
      input->bytes = *raw;
    } else {
      auto bytes = TypedBytes(tensor, arena);
      if (!bytes.ok()) return bytes.status();
      input->bytes = *bytes;
    }
    // INT32 is as wide as the type that stands for it here.
    return CheckBytes(*input, tensor.name());
  }
};

absl::StatusOr<std::vector<int64_t>> ReadLengths(const EncodedTensor& tensor, int64_t b,
                                                 int64_t n) {
  if (!tensor.present) return std::vector<int64_t>(b, n);
  if (tensor.shape != std::vector<int64_t>{b}) {
    return InvalidField("lengths", "shape ", ShapeText(tensor.shape), ", expected [B] = [", b, "]");
  }
  std::vector<int64_t> lengths;
  ByteRange bytes = tensor.bytes;
  for (int32_t length = 0; bytes.Read(&length, sizeof(length));) {
    if (length < 1 || length > n) {
      return InvalidField("lengths", "element ", lengths.size(), " is ", length,
                          ", expected 1 to N = ", n);
    }
    lengths.push_back(length);
  }
  return lengths;
}

// Sequence b of a padded tensor [B, N, ...]: its first `rows` rows, of `columns` of its columns.
EncodedTensor Part(const EncodedTensor& tensor, int64_t b, std::vector<int64_t> shape) {
  EncodedTensor part = tensor;
  if (!tensor.present) return part;
  int64_t elements = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) elements *= tensor.shape[i];
  part.bytes.Skip(b * elements * SizeOf(tensor.type));
  part.row_stride = tensor.shape.size() > 2 ? tensor.shape[2] : 0;
  part.shape = std::move(shape);
  return part;
}

absl::Status CheckPadded(const EncodedTensor& tensor, absl::string_view name,
                         std::vector<int64_t> shape) {
  if (!tensor.present || tensor.shape == shape) return absl::OkStatus();
  return InvalidField(name, "shape ", ShapeText(tensor.shape), ", expected ", ShapeText(shape),
                      " beside items [B, N, d_f]");
}

absl::Status TakeApart(const Inputs& inputs, InferQuestion* question) {
  const std::vector<int64_t>& shape = inputs.items.shape;
  if (shape.size() != 3) {
    if (inputs.lengths.present) {
      return InvalidField("lengths", "only beside items [B, N, d_f], but items are ",
                          ShapeText(shape));
    }
    question->padded_length = shape[0];
    question->sequences.push_back(
        {inputs.items, inputs.key_mask, inputs.attention_mask, inputs.attention_bias});
    return absl::OkStatus();
  }
  const int64_t b = shape[0], n = shape[1];
  // Without a zero the shape can't promise more than the bytes that came.
  if (b < 1 || n < 1 || shape[2] < 1) {
    return InvalidField(
        "items", "shape ", ShapeText(shape),
        "; a batch [B, N, d_f] has one sequence, one item and one feature at least");
  }
  absl::Status status = CheckPadded(inputs.key_mask, "key_mask", {b, n});
  status.Update(CheckPadded(inputs.attention_mask, "attention_mask", {b, n, n}));
  status.Update(CheckPadded(inputs.attention_bias, "attention_bias", {b, n, n}));
  if (!status.ok()) return status;
  auto lengths = ReadLengths(inputs.lengths, b, n);
  if (!lengths.ok()) return lengths.status();
  question->batched = true;
  question->padded_length = n;
  for (int64_t i = 0; i < b; ++i) {
    const int64_t length = (*lengths)[i];
    question->sequences.push_back({Part(inputs.items, i, {length, shape[2]}),
                                   Part(inputs.key_mask, i, {length}),
                                   Part(inputs.attention_mask, i, {length, length}),
                                   Part(inputs.attention_bias, i, {length, length})});
  }
  return absl::OkStatus();
}

absl::StatusOr<InferOutput> ReadOutput(const OutputTensor& tensor) {
  if (tensor.parameters().count("shared_memory_region") > 0) {
    return InvalidField(tensor.name(), "shared memory is not supported");
  }
  if (tensor.parameters().count("classification") > 0) {
    return InvalidField(tensor.name(), "classification is not supported");
  }
  InferOutput output;
  const auto* row = std::find_if(std::begin(kOutputNames), std::end(kOutputNames),
                                 [&](const OutputName& r) { return tensor.name() == r.name; });
  if (row == std::end(kOutputNames)) {
    return InvalidField(tensor.name(), "no such output; there are values, scores and weights");
  }
  output.kind = row->kind;
  const auto datatype = tensor.parameters().find("datatype");
  if (datatype != tensor.parameters().end()) {
    const std::string& name = datatype->second.string_param();
    if (name != "FP32" && name != "FP16") {
      return InvalidField(tensor.name(), "datatype \"", name, "\"; use FP32 or FP16");
    }
    output.type = name == "FP16" ? ElementType::kF16 : ElementType::kF32;
  }
  return output;
}

absl::Status ReadOutputs(const ModelInferRequest& header, InferQuestion* question) {
  for (const OutputTensor& tensor : header.outputs()) {
    auto output = ReadOutput(tensor);
    if (!output.ok()) return output.status();
    for (const InferOutput& other : question->outputs) {
      if (other.kind == output->kind) {
        return InvalidField(tensor.name(), "the output is asked for twice");
      }
    }
    question->outputs.push_back(*output);
  }
  if (question->outputs.empty()) question->outputs.push_back({});
  for (EncodedSequence& sequence : question->sequences) {
    sequence.want_values = false;
    for (const InferOutput& output : question->outputs) {
      if (output.kind == OutputKind::kValues) sequence.want_values = true;
      if (output.kind == OutputKind::kScores) sequence.want_scores = true;
      if (output.kind == OutputKind::kWeights) sequence.want_weights = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> IntegerOf(const InferParameter& parameter, absl::string_view name) {
  uint64_t number = parameter.uint64_param();
  bool ok = parameter.has_uint64_param();
  if (parameter.has_int64_param()) {
    number = static_cast<uint64_t>(parameter.int64_param());
    ok = parameter.int64_param() >= 0;
  } else if (parameter.has_string_param()) {
    ok = absl::SimpleAtoi(parameter.string_param(), &number);
  }
  if (!ok) return InvalidField(name, "expected an integer that is not negative");
  return number;
}

absl::Status ReadParameters(const ModelInferRequest& header, InferQuestion* question) {
  for (const auto& [name, parameter] : header.parameters()) {
    if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end") {
      return InvalidField(name, "stateful sequences are not supported: every request stands alone");
    }
    if (name != "priority" && name != "timeout" && name != "causal") continue;
    if (name == "causal") {
      if (!parameter.has_bool_param()) return InvalidField(name, "expected a bool");
      for (EncodedSequence& s : question->sequences) s.causal = parameter.bool_param();
      continue;
    }
    auto number = IntegerOf(parameter, name);
    if (!number.ok()) return number.status();
    if (name == "priority") {
      question->priority = static_cast<uint32_t>(std::min<uint64_t>(*number, UINT32_MAX));
    } else {
      // A day is no deadline, and larger numbers would leave the clock's range.
      question->timeout = std::chrono::microseconds(std::min<uint64_t>(*number, 86'400'000'000));
    }
  }
  return absl::OkStatus();
}

FloatBuffer& BufferOf(OutputKind kind, SequenceOutput& output) {
  if (kind == OutputKind::kScores) return output.scores;
  return kind == OutputKind::kWeights ? output.weights : output.values;
}

// Where the result of sequence b goes in the padded result: `blocks` blocks of n rows of `columns`.
struct Padded {
  int64_t blocks = 1, rows = 0, columns = 0;
  int64_t elements() const { return blocks * rows * columns; }
};

void CopyPadded(const float* from, const Padded& own, const Padded& padded, float* to) {
  std::fill_n(to, padded.elements(), 0.0f);
  for (int64_t block = 0; block < own.blocks; ++block) {
    for (int64_t row = 0; row < own.rows; ++row, from += own.columns) {
      std::copy_n(from, own.columns, to + (block * padded.rows + row) * padded.columns);
    }
  }
}

class OutputWriter {
 public:
  OutputWriter(const InferAnswerHeader& header, std::vector<Answer>& answers)
      : info_(header.model.model->info()), question_(header.question), answers_(answers) {}

  std::vector<int64_t> Shape(OutputKind kind) const {
    const Padded padded = SizeFor(kind, question_.padded_length);
    std::vector<int64_t> shape;
    if (question_.batched) shape.push_back(static_cast<int64_t>(answers_.size()));
    if (kind != OutputKind::kValues) shape.push_back(padded.blocks);
    shape.push_back(padded.rows);
    shape.push_back(padded.columns);
    return shape;
  }
  FloatBuffer Take(OutputKind kind) {
    if (!question_.batched) return std::move(BufferOf(kind, answers_[0].output));
    const Padded padded = SizeFor(kind, question_.padded_length);
    FloatBuffer all(padded.elements() * static_cast<int64_t>(answers_.size()));
    for (size_t b = 0; b < answers_.size(); ++b) {
      const Padded own = SizeFor(kind, question_.sequences[b].num_items());
      CopyPadded(BufferOf(kind, answers_[b].output).data(), own, padded,
                 all.data() + b * padded.elements());
    }
    return all;
  }

 private:
  Padded SizeFor(OutputKind kind, int64_t n) const {
    return kind == OutputKind::kValues ? Padded{1, n, info_.d_out} : Padded{info_.num_heads, n, n};
  }

  const ModelInfo& info_;
  const InferQuestion& question_;
  std::vector<Answer>& answers_;
};

}  // namespace

absl::string_view OipNameOf(ElementType type) { return kTypeNames[static_cast<size_t>(type)].name; }

absl::Status ReadInferRequest(ByteRange bytes, InferRequest* request) {
  WireReader reader(bytes, "ModelInferRequest");
  WireField field;
  std::string rest;
  rest.reserve(256);
  while (reader.Next(&field)) {
    if (field.number == ModelInferRequest::kRawInputContentsFieldNumber &&
        field.type == WireType::kBytes) {
      request->raw.push_back(field.bytes);
      continue;
    }
    const size_t end = rest.size();
    rest.resize(end + field.whole.size());
    field.whole.Read(rest.data() + end, rest.size() - end);
  }
  if (!reader.status().ok()) return reader.status();
  if (!request->header.ParseFromString(rest)) {
    return absl::InvalidArgumentError("ModelInferRequest: not a valid protobuf message");
  }
  return absl::OkStatus();
}

absl::StatusOr<InferQuestion> ReadQuestion(const InferRequest& request, ByteArena* arena) {
  auto inputs = Inputs::Read(request, arena);
  if (!inputs.ok()) return inputs.status();
  InferQuestion question;
  absl::Status status = TakeApart(*inputs, &question);
  if (status.ok()) status = ReadOutputs(request.header, &question);
  if (status.ok()) status = ReadParameters(request.header, &question);
  if (!status.ok()) return status;
  return question;
}

grpc::ByteBuffer WriteInferResponse(const InferAnswerHeader& header, std::vector<Answer> answers) {
  OutputWriter outputs(header, answers);
  SmallArena memory;
  auto& response = memory.Make<ModelInferResponse>();
  response.set_model_name(header.model.name);
  response.set_model_version(absl::StrCat(header.model.version));
  response.set_id(header.id);
  for (const InferOutput& output : header.question.outputs) {
    auto* tensor = response.add_outputs();
    tensor->set_name(std::string(NameOf(output.kind)));
    tensor->set_datatype(std::string(OipNameOf(output.type)));
    const std::vector<int64_t> shape = outputs.Shape(output.kind);
    tensor->mutable_shape()->Add(shape.begin(), shape.end());
  }
  MessageWriter writer;
  writer.Append(response);
  for (const InferOutput& output : header.question.outputs) {
    FloatBuffer floats = outputs.Take(output.kind);
    writer.Begin(ModelInferResponse::kRawOutputContentsFieldNumber,
                 floats.size() * SizeOf(output.type));
    writer.Floats(std::move(floats), output.type);
  }
  return writer.Take();
}

}  // namespace attend

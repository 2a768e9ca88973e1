#include "server/rpc/encoded_sequence.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/rpc/invalid_field.h"

namespace attend {
namespace {

struct Storage {
  FloatBuffer items;
  std::vector<uint8_t> key_mask;
  std::vector<uint8_t> attention_mask;
  FloatBuffer attention_bias;
  std::shared_ptr<const void> hold;
};

int64_t Elements(const EncodedTensor& tensor) {
  int64_t count = tensor.present ? 1 : 0;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

int64_t RowLength(const EncodedTensor& tensor) { return tensor.shape.back(); }

// Calls copy(bytes, first element, count) for each dense run of the tensor's elements.
template <typename Copy>
void ForEachRun(const EncodedTensor& tensor, Copy copy) {
  const int64_t count = Elements(tensor);
  const int64_t length = RowLength(tensor);
  const bool dense = tensor.row_stride == 0 || tensor.row_stride == length;
  const int64_t run = dense ? count : length;
  ByteRange bytes = tensor.bytes;
  for (int64_t first = 0; first < count; first += run) {
    copy(bytes, first, run);
    bytes.Skip(tensor.row_stride * SizeOf(tensor.type));
  }
}

FloatBuffer DecodeFloats(const EncodedTensor& tensor) {
  FloatBuffer floats(Elements(tensor));
  ForEachRun(tensor, [&](ByteRange bytes, int64_t first, int64_t count) {
    DecodeFloats(tensor.type, bytes, floats.span().subspan(first, count));
  });
  return floats;
}

absl::StatusOr<std::vector<uint8_t>> DecodeMask(const EncodedTensor& tensor,
                                                absl::string_view field) {
  std::vector<uint8_t> mask(Elements(tensor));
  ForEachRun(tensor, [&](ByteRange bytes, int64_t first, int64_t count) {
    bytes.Read(mask.data() + first, count);
  });
  const auto bad = std::find_if(mask.begin(), mask.end(), [](uint8_t byte) { return byte > 1; });
  if (bad != mask.end()) {
    return InvalidField(field, "element ", bad - mask.begin(), " is ", int{*bad},
                        "; a BOOL is one byte, 0 or 1");
  }
  return mask;
}

absl::Status CheckMatrix(const EncodedTensor& tensor, absl::string_view field, int64_t n) {
  if (!tensor.present || tensor.shape == std::vector<int64_t>{n, n}) return absl::OkStatus();
  return InvalidField(field, "shape ", ShapeText(tensor.shape), ", expected [N, N] = [", n, ", ", n,
                      "] for ", n, " items");
}

absl::Status CheckType(const EncodedTensor& tensor, absl::string_view field, bool mask) {
  if (!tensor.present || (tensor.type == ElementType::kBool) == mask) return absl::OkStatus();
  return InvalidField(field, "element type ", NameOf(tensor.type), ", expected ",
                      mask ? "BOOL, true = may be attended to" : "F32, F16, BF16 or F64");
}

absl::Status CheckItems(const EncodedTensor& items, const ModelInfo& model) {
  if (!items.present) {
    return InvalidField("items", "missing; expected a tensor [N, ", model.d_f, "]");
  }
  if (items.shape.size() != 2 || items.shape[1] != model.d_f) {
    return InvalidField("items", "shape ", ShapeText(items.shape),
                        ", but the model takes [N, d_f] = [N, ", model.d_f, "]");
  }
  if (items.shape[0] < 1) return InvalidField("items", "N = 0; a sequence has one item at least");
  if (items.shape[0] > model.max_sequence_length) {
    return InvalidField("items", "N = ", items.shape[0], ", the model's limit is ",
                        model.max_sequence_length);
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckBytes(const EncodedTensor& tensor, absl::string_view field) {
  int64_t bytes = SizeOf(tensor.type);
  for (const int64_t size : tensor.shape) {
    if (size < 0) {
      return InvalidField(field, "shape ", ShapeText(tensor.shape), " has a negative size");
    }
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return InvalidField(field, "shape ", ShapeText(tensor.shape), " is beyond any memory");
    }
  }
  if (tensor.shape.empty()) return InvalidField(field, "no shape");
  if (tensor.bytes.size() != static_cast<uint64_t>(bytes)) {
    return InvalidField(field, "shape ", ShapeText(tensor.shape), " of ", NameOf(tensor.type),
                        " needs ", bytes, " bytes, but ", tensor.bytes.size(), " came");
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const EncodedSequence& sequence, const ModelInfo& model) {
  const int64_t n = sequence.num_items();
  absl::Status status = CheckType(sequence.items, "items", false);
  status.Update(CheckItems(sequence.items, model));
  status.Update(CheckType(sequence.key_mask, "key_mask", true));
  status.Update(CheckType(sequence.attention_mask, "attention_mask", true));
  status.Update(CheckType(sequence.attention_bias, "attention_bias", false));
  const EncodedTensor& key_mask = sequence.key_mask;
  if (status.ok() && key_mask.present && key_mask.shape != std::vector<int64_t>{n}) {
    return InvalidField("key_mask", "shape ", ShapeText(key_mask.shape), ", expected [N] = [", n,
                        "]");
  }
  status.Update(CheckMatrix(sequence.attention_mask, "attention_mask", n));
  status.Update(CheckMatrix(sequence.attention_bias, "attention_bias", n));
  return status;
}

int64_t DecodedBytes(const EncodedSequence& sequence) {
  return Elements(sequence.key_mask) + Elements(sequence.attention_mask) +
         static_cast<int64_t>(sizeof(float)) *
             (Elements(sequence.items) + Elements(sequence.attention_bias));
}

int64_t AnswerElements(const EncodedSequence& sequence, const ModelInfo& model) {
  const double n = static_cast<double>(sequence.num_items());
  const double matrices = (sequence.want_scores ? 1 : 0) + (sequence.want_weights ? 1 : 0);
  const double values = sequence.want_values ? n * static_cast<double>(model.d_out) : 0;
  const double elements = values + matrices * static_cast<double>(model.num_heads) * n * n;
  return static_cast<int64_t>(std::min(elements, 0x1p62));
}

absl::StatusOr<DecodedSequence> Decode(const EncodedSequence& sequence,
                                       std::shared_ptr<const void> hold) {
  auto storage = std::make_shared<Storage>();
  storage->hold = std::move(hold);
  storage->items = DecodeFloats(sequence.items);
  const int64_t n = sequence.num_items();
  DecodedSequence decoded;
  SequenceInput& input = decoded.input;
  input.items = {storage->items.data(), n, RowLength(sequence.items)};
  if (sequence.key_mask.present) {
    auto mask = DecodeMask(sequence.key_mask, "key_mask");
    if (!mask.ok()) return mask.status();
    storage->key_mask = *std::move(mask);
    input.key_mask = storage->key_mask;
  }
  if (sequence.attention_mask.present) {
    auto mask = DecodeMask(sequence.attention_mask, "attention_mask");
    if (!mask.ok()) return mask.status();
    storage->attention_mask = *std::move(mask);
    input.attention_mask = {storage->attention_mask.data(), n, n};
  }
  if (sequence.attention_bias.present) {
    storage->attention_bias = DecodeFloats(sequence.attention_bias);
    input.attention_bias = {storage->attention_bias.data(), n, n};
  }
  input.causal = sequence.causal;
  input.want_values = sequence.want_values;
  input.want_scores = sequence.want_scores;
  input.want_weights = sequence.want_weights;
  decoded.storage = std::move(storage);
  return decoded;
}

}  // namespace attend

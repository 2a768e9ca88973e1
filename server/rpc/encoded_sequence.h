// One sequence as a protocol's message holds it: described, checked, not yet copied. Every protocol
// is decoded to this, and from here on they are the same.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model.h"
#include "core/sequence.h"
#include "server/rpc/element_type.h"
#include "server/rpc/wire_reader.h"

namespace attend {

struct EncodedTensor {
  bool present = false;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  int64_t row_stride = 0;  // elements from row to row where they lie; 0: as many as a row has
  ByteRange bytes;         // begins at the first element; at least up to the last
};

// "[3, 4]"
std::string ShapeText(const std::vector<int64_t>& shape);
// INVALID_ARGUMENT naming `field` when a size is negative, the product overflows, or `bytes` are
// not exactly as many as shape and type need.
absl::Status CheckBytes(const EncodedTensor& tensor, absl::string_view field);

struct EncodedSequence {
  EncodedTensor items;           // [N, d_f]
  EncodedTensor key_mask;        // BOOL [N]
  EncodedTensor attention_mask;  // BOOL [N, N]
  EncodedTensor attention_bias;  // [N, N]
  bool causal = false;
  bool want_values = true;
  bool want_scores = false;
  bool want_weights = false;

  int64_t num_items() const { return items.shape.empty() ? 0 : items.shape[0]; }
};

// INVALID_ARGUMENT naming the field, what came and what `model` takes; nothing is allocated before.
absl::Status CheckShapes(const EncodedSequence& sequence, const ModelInfo& model);

// Bytes of the sequence's numbers once decoded, and of the answer's once computed, as float32.
int64_t DecodedBytes(const EncodedSequence& sequence);
int64_t AnswerElements(const EncodedSequence& sequence, const ModelInfo& model);

struct DecodedSequence {
  SequenceInput input;
  std::shared_ptr<const void> storage;  // owns what `input` views
};

// The one copy of a request's body: from the slices it arrived in to float32. `hold` is kept with
// it. INVALID_ARGUMENT for a BOOL that is neither 0 nor 1.
absl::StatusOr<DecodedSequence> Decode(const EncodedSequence& sequence,
                                       std::shared_ptr<const void> hold);

}  // namespace attend

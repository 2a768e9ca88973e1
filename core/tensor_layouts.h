// How the parameters of one attention layer are named and laid out in the checkpoints that people
// have. docs/models.md lists the layouts.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace attend {

// A parameter as rows of a stored tensor.
struct ParameterSource {
  std::string tensor;  // "" when the layer has no such parameter
  int64_t first_row = 0, rows = 0;
  int64_t columns = 0;      // 1 for a bias
  bool transposed = false;  // stored as [columns, all rows], as GPT-2's Conv1D does

  bool absent() const { return tensor.empty(); }
};

// Where a layer's parameters come from; shapes as in core/attention_parameters.h.
struct LayerTensors {
  std::string layout;        // "plain", "BERT", "torch.nn.MultiheadAttention" ...
  bool multi_head = true;    // the layout doesn't say how many heads, and one would be a guess
  bool asks_causal = false;  // the layout is that of a causal model, so attend.json must decide
  ParameterSource query_weight, query_bias, key_weight, key_bias, value_weight, value_bias;
  ParameterSource output_weight, output_bias;
};

// The layer whose tensors' names begin with `prefix`. INVALID_ARGUMENT that lists the names found
// when no layout or more than one fits, names the tensor that is missing or has another shape, or
// refuses by name what would change the layer's meaning: rotary or relative positions, normalised
// queries, torch's q_proj_weight, bias_k and bias_v, and so on.
absl::StatusOr<LayerTensors> RecognizeLayer(const TensorMap& tensors, const std::string& prefix);

// The prefixes at which something like a layer's query lies, in the order of their numbers
// ("layer.2" before "layer.10"). RecognizeLayer says what is there.
std::vector<std::string> FindLayerPrefixes(const TensorMap& tensors);

}  // namespace attend

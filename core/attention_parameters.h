// The numbers that define one attention layer, as loaders hand them over.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/float_buffer.h"
#include "core/model.h"

namespace attend {

// p_i = normalizer of s_ij over A(i), the items that i may attend to; m = max s_ij over A(i).
enum class Normalizer {
  kSoftmax,     // e^(s-m) / sum e^(s-m)
  kSoftmaxOne,  // M = max(0, m): e^(s-M) / (e^-M + sum e^(s-M)); may attend to nothing
  kSigmoid,     // 1 / (1 + e^-s)
  kRelu,        // max(s, 0) / |A(i)|
  kSparsemax,   // max(s - m - t, 0) with sum 1 (Martins and Astudillo 2016)
  kNone,        // s
};

struct AttentionConfig {
  int64_t d_f = 0, d_k = 0, d_v = 0;
  int64_t num_heads = 1;      // H
  int64_t num_key_heads = 1;  // divides H; query head a uses key head a / (H / num_key_heads)
  float scale = 1;            // resolved: 1/sqrt(d_k), 1 or any finite number
  Normalizer normalizer = Normalizer::kSoftmax;
  bool causal = false;
  int64_t max_sequence_length = 65536;
  std::vector<std::string> feature_names;                              // [d_f] or empty
  std::vector<std::pair<std::string, std::vector<float>>> item_names;  // name, [d_f]
};

// Row major. An empty buffer means that the layer has no such parameter.
struct AttentionWeights {
  FloatBuffer query_weight, query_bias;    // [H*d_k, d_f], [H*d_k]
  FloatBuffer key_weight, key_bias;        // [num_key_heads*d_k, d_f], [num_key_heads*d_k]
  FloatBuffer value_weight, value_bias;    // [num_key_heads*d_v, d_f], [num_key_heads*d_v]
  FloatBuffer output_weight, output_bias;  // [d_out, H*d_v], [d_out]
  int64_t d_out = 0;                       // rows of output_weight, else H*d_v
};

// Packs the weights for this machine's ISA and proves the product shapes that keep the same bits.
// INVALID_ARGUMENT naming the tensor and both sizes when config and weights disagree, or naming the
// place of a weight that is not finite; INTERNAL when oneDNN can't be set up.
absl::StatusOr<std::unique_ptr<Model>> MakeAttentionModel(AttentionConfig config,
                                                          AttentionWeights weights);

}  // namespace attend

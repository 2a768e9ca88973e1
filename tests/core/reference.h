// The layer computed in float64 from the definition, one number after another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/attention_parameters.h"
#include "core/sequence.h"

namespace attend {

// Row major. Heads: H of q, s, p and y; G key heads of k and v.
struct Reference {
  int64_t n = 0;
  std::vector<double> q;         // [N, H*d_k]
  std::vector<double> k;         // [N, G*d_k]
  std::vector<double> v;         // [N, G*d_v]
  std::vector<uint8_t> allowed;  // [N, N], 1: j is in A(i)
  std::vector<double> scores;    // [H, N, N], -inf outside A(i)
  std::vector<double> weights;   // [H, N, N]
  std::vector<double> y;         // [N, H*d_v]
  std::vector<double> values;    // [N, d_out]
};

// What becomes of every number of q before it is used; nothing when empty.
using QueryRounding = std::function<double(double)>;

Reference ComputeReference(const AttentionConfig& config, const AttentionWeights& weights,
                           const SequenceInput& input, const QueryRounding& rounding = {});

// One row of a normalizer; `scores` of the items in A(i), at least one.
std::vector<double> NormalizeReference(Normalizer normalizer, const std::vector<double>& scores);

}  // namespace attend

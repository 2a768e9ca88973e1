// How far a right float32 answer may lie from the true one: the tolerance of the design, derived
// from the arithmetic alone (first order, probabilistic: Higham and Mary 2019).
//
// With u = 2^-24, every number below a variance of rounding errors:
//   var dot_n(a, b) = u^2 n (sum a^2 b^2 + (sum ab)^2), a bias counts as one more term
//   var s = scale^2 (sum var_q k^2 + sum q^2 var_k + var dot_(d_k+2)) + 4u^2 s^2 + u^2 (bias^2 +
//   s^2) D = 8 sqrt(var s), from which each normalizer makes E, the bound of a weight var y = sum
//   E^2 v^2 (or (sum E|v|)^2 if D > 0.01)
//           + 64 (sum p^2 var_v + u^2 (n+4) (sum p^2 v^2 + y^2))
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/core/reference.h"

namespace attend {

struct Bounds {
  std::vector<double> scores;   // [H, N, N]
  std::vector<double> weights;  // [H, N, N]
  std::vector<double> values;   // [N, d_out]
};

Bounds ComputeBounds(const AttentionConfig& config, const AttentionWeights& weights,
                     const SequenceInput& input, const Reference& truth);

// The largest |got - truth| / bound; 0/0 is 0, equal infinities are 0 apart, and anything that is
// not a number is infinitely far.
double WorstRatio(std::span<const float> got, const std::vector<double>& truth,
                  const std::vector<double>& bounds);

}  // namespace attend

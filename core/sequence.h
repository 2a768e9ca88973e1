// One caller's sequence as the core sees it, and what the core makes of it.
//
// Letters, here and everywhere: N items, d_f features of an item, H heads, d_k features of a query
// or key, d_v of a value, d_out of a result item.
#pragma once

#include <cstdint>
#include <span>

#include "core/float_buffer.h"
#include "core/matrix_view.h"

namespace attend {

// Views of numbers that the caller owns and keeps alive and unchanged until the sequence's
// completion has been called.
struct SequenceInput {
  MatrixView<const float> items;            // [N, d_f], finite
  std::span<const uint8_t> key_mask;        // [N] or empty; 1 = may be attended to, 0 = not
  MatrixView<const uint8_t> attention_mask; // [N, N] or empty; 1 = item i may attend to item j
  MatrixView<const float> attention_bias;   // [N, N] or empty; -inf forbids the pair
  bool causal = false;                      // j <= i only, also when the model is not causal
  bool want_values = true;
  bool want_scores = false;
  bool want_weights = false;

  int64_t num_items() const { return items.rows; }
};

// What was wanted is filled, the rest is empty. Owns its numbers.
struct SequenceOutput {
  FloatBuffer values;   // [N, d_out]
  FloatBuffer scores;   // [H, N, N], -inf outside A(i)
  FloatBuffer weights;  // [H, N, N], +0 outside A(i)
};

}  // namespace attend

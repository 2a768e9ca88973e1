#include "core/attention_check.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/simd_rows.h"

namespace attend {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckItems(const AttentionConfig& config, const MatrixView<const float>& items) {
  if (items.columns != config.d_f) {
    return Invalid("items: ", items.columns,
                   " features an item, the model expects d_f = ", config.d_f);
  }
  if (items.rows < 1 || items.rows > config.max_sequence_length) {
    return Invalid("items: ", items.rows, " items, the model takes 1 to ",
                   config.max_sequence_length);
  }
  for (int64_t i = 0; i < items.rows; ++i) {
    const float* x = items.row(i);
    if (AllFinite(x, items.columns)) continue;
    int64_t f = 0;
    while (std::isfinite(x[f])) ++f;
    return Invalid("items: feature ", f, " of item ", i, " is ", x[f],
                   ", expected a finite float32");
  }
  return absl::OkStatus();
}

// The place of the first byte that is neither 0 nor 1, or -1.
int64_t FindBadByte(const uint8_t* mask, int64_t count) {
  const uint8_t* bad = std::find_if(mask, mask + count, [](uint8_t byte) { return byte > 1; });
  return bad == mask + count ? -1 : bad - mask;
}

absl::Status BadByte(absl::string_view field, uint8_t byte, absl::string_view place) {
  return Invalid(field, ": byte ", static_cast<int>(byte), " at ", place,
                 ", expected 0 (hidden) or 1 (may be attended to)");
}

template <typename T>
absl::Status CheckPairs(absl::string_view field, const MatrixView<T>& pairs, int64_t n) {
  if (pairs.rows == n && pairs.columns == n) return absl::OkStatus();
  return Invalid(field, ": shape [", pairs.rows, ", ", pairs.columns, "], expected [", n, ", ", n,
                 "] for ", n, " items");
}

absl::Status CheckBias(const MatrixView<const float>& bias) {
  for (int64_t i = 0; i < bias.rows; ++i) {
    if (AllFinite(bias.row(i), bias.columns)) continue;
    for (int64_t j = 0; j < bias.columns; ++j) {
      const float b = bias.row(i)[j];
      if (std::isfinite(b) || b == kMinusInfinity) continue;
      return Invalid("attention_bias: ", b, " at [", i, ", ", j,
                     "], expected a finite float32, or -inf to forbid the pair");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(absl::string_view name, const FloatBuffer& tensor, int64_t expected,
                         absl::string_view shape) {
  if (tensor.size() != expected) {
    return Invalid(name, ": ", tensor.size(), " numbers, expected ", expected, " for ", shape);
  }
  if (AllFinite(tensor.data(), tensor.size())) return absl::OkStatus();
  int64_t i = 0;
  while (std::isfinite(tensor.data()[i])) ++i;
  return Invalid(name, ": number ", i, " is ", tensor.data()[i], ", expected a finite float32");
}

absl::Status CheckPair(absl::string_view name, const FloatBuffer& weight, const FloatBuffer& bias,
                       int64_t outputs, int64_t inputs) {
  absl::Status status = CheckTensor(absl::StrCat(name, ".weight"), weight, outputs * inputs,
                                    absl::StrCat("[", outputs, ", ", inputs, "]"));
  if (!status.ok() || bias.empty()) return status;
  return CheckTensor(absl::StrCat(name, ".bias"), bias, outputs, absl::StrCat("[", outputs, "]"));
}

absl::Status CheckConfig(const AttentionConfig& c) {
  for (const auto& [name, value] :
       {std::pair("d_f", c.d_f), std::pair("d_k", c.d_k), std::pair("d_v", c.d_v),
        std::pair("num_heads", c.num_heads), std::pair("num_key_heads", c.num_key_heads),
        std::pair("max_sequence_length", c.max_sequence_length)}) {
    if (value < 1) return Invalid(name, ": ", value, ", expected at least 1");
  }
  if (c.num_heads % c.num_key_heads != 0) {
    return Invalid("num_key_heads: ", c.num_key_heads,
                   " does not divide num_heads = ", c.num_heads);
  }
  if (!std::isfinite(c.scale)) return Invalid("scale: ", c.scale, ", expected a finite float32");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSequence(const AttentionConfig& config, const SequenceInput& s) {
  if (absl::Status status = CheckItems(config, s.items); !status.ok()) return status;
  const int64_t n = s.num_items();
  if (!s.key_mask.empty()) {
    if (static_cast<int64_t>(s.key_mask.size()) != n) {
      return Invalid("key_mask: ", s.key_mask.size(), " entries for ", n, " items");
    }
    if (const int64_t j = FindBadByte(s.key_mask.data(), n); j >= 0) {
      return BadByte("key_mask", s.key_mask[j], absl::StrCat("item ", j));
    }
  }
  if (!s.attention_mask.empty()) {
    absl::Status status = CheckPairs("attention_mask", s.attention_mask, n);
    if (!status.ok()) return status;
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* row = s.attention_mask.row(i);
      if (const int64_t j = FindBadByte(row, n); j >= 0) {
        return BadByte("attention_mask", row[j], absl::StrCat("[", i, ", ", j, "]"));
      }
    }
  }
  if (!s.attention_bias.empty()) {
    absl::Status status = CheckPairs("attention_bias", s.attention_bias, n);
    if (status.ok()) status = CheckBias(s.attention_bias);
    if (!status.ok()) return status;
  }
  if (!s.want_values && !s.want_scores && !s.want_weights) {
    return Invalid("want: nothing is asked for; ask for VALUES, SCORES or WEIGHTS");
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const AttentionConfig& c, const AttentionWeights& w) {
  if (absl::Status status = CheckConfig(c); !status.ok()) return status;
  const int64_t keys = c.num_key_heads * c.d_k, values = c.num_key_heads * c.d_v;
  absl::Status status =
      CheckPair("query", w.query_weight, w.query_bias, c.num_heads * c.d_k, c.d_f);
  if (status.ok()) status = CheckPair("key", w.key_weight, w.key_bias, keys, c.d_f);
  if (status.ok()) status = CheckPair("value", w.value_weight, w.value_bias, values, c.d_f);
  if (!status.ok()) return status;
  const int64_t width = c.num_heads * c.d_v;
  if (!w.output_weight.empty()) {
    return CheckPair("output", w.output_weight, w.output_bias, w.d_out, width);
  }
  if (!w.output_bias.empty()) return Invalid("output.bias: given without output.weight");
  if (w.d_out != width) {
    return Invalid("d_out: ", w.d_out, " without an output projection, expected H*d_v = ", width);
  }
  return absl::OkStatus();
}

}  // namespace attend

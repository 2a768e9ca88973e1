// attend.json: what a model's folder says about its tensors and how it wants to be served.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention_parameters.h"
#include "core/load_model.h"

namespace attend {

// Absent is what the tensors' shapes decide, or, for `scale`, 1/sqrt(d_k). docs/models.md lists the
// keys.
struct AttendJson {
  std::optional<int64_t> d_f, d_k, d_v, num_heads, num_key_heads;
  std::optional<float> scale;
  Normalizer normalizer = Normalizer::kSoftmax;
  std::optional<bool> causal;
  std::string tensor_prefix;
  int64_t max_sequence_length = 65536;
  std::vector<std::string> feature_names;
  std::vector<std::pair<std::string, std::vector<float>>> item_names;
  ModelBatchingOptions batching;
};

// INVALID_ARGUMENT naming the key, what it holds and what was expected; for unknown keys and for
// keys that come twice too. Keys that begin with '_' are comments.
absl::StatusOr<AttendJson> ParseAttendJson(absl::string_view text);

}  // namespace attend

// config.json, which Hugging Face's transformers keep beside a checkpoint: the little of it that
// tells what the tensors' shapes don't.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace attend {

struct HuggingFaceConfig {
  std::string model_type;  // "bert", "gpt2" ...; "" when not said
  std::optional<int64_t> num_heads, num_key_heads;
  // What the model's attention does that Attend doesn't, with the key that says so: "rope_theta
  // 10000.0: rotary position embedding". "" for none.
  std::string unsupported;
};

// Empty when DIRECTORY/config.json is not there; INVALID_ARGUMENT when it is no JSON object.
absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(const std::string& directory);

}  // namespace attend

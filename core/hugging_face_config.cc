#include "core/hugging_face_config.h"

#include <absl/strings/str_cat.h>

#include <initializer_list>

#include "core/read_only_file.h"
#include "core/strict_json.h"

namespace attend {
namespace {

constexpr char kConfigFile[] = "config.json";
constexpr uint64_t kMaxConfigBytes = 16 << 20;

// Keys whose presence, other than as null or false, changes the attention.
constexpr struct {
  const char* key;
  const char* meaning;
} kUnsupported[] = {
    {"rope_theta", "rotary position embedding"},
    {"rope_scaling", "rotary position embedding"},
    {"rope_parameters", "rotary position embedding"},
    {"rotary_dim", "rotary position embedding"},
    {"rotary_pct", "rotary position embedding"},
    {"rotary_emb_base", "rotary position embedding"},
    {"alibi", "linear position biases"},
    {"relative_attention", "relative position embedding"},
};

bool IsSaid(const Json& json, const char* key) {
  return json.contains(key) && !json[key].is_null() && json[key] != false;
}

std::optional<int64_t> FirstCount(const Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (json.contains(key) && json[key].is_number_unsigned() && json[key] > 0) {
      return json[key].get<int64_t>();
    }
  }
  return std::nullopt;
}

std::string Unsupported(const Json& json) {
  for (const auto& [key, meaning] : kUnsupported) {
    if (IsSaid(json, key)) return absl::StrCat(key, " ", Excerpt(json[key]), ": ", meaning);
  }
  constexpr char kPositions[] = "position_embedding_type";
  if (IsSaid(json, kPositions) && json[kPositions] != "absolute") {
    return absl::StrCat(kPositions, " ", Excerpt(json[kPositions]),
                        ": positions other than absolute ones");
  }
  return "";
}

}  // namespace

absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(const std::string& directory) {
  HuggingFaceConfig config;
  const absl::StatusOr<std::string> text =
      ReadTextFile(absl::StrCat(directory, "/", kConfigFile), kMaxConfigBytes);
  if (absl::IsNotFound(text.status())) return config;
  const absl::StatusOr<Json> json = text.ok() ? ParseStrictJson(*text) : text.status();
  if (!json.ok() || !json->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kConfigFile, ": ",
                     json.ok() ? "expected a JSON object" : std::string(json.status().message()),
                     "; remove it if it is not this model's"));
  }
  config.num_heads = FirstCount(*json, {"num_attention_heads", "n_head", "n_heads", "num_heads"});
  config.num_key_heads = FirstCount(*json, {"num_key_value_heads"});
  if (json->contains("model_type") && (*json)["model_type"].is_string()) {
    config.model_type = (*json)["model_type"].get<std::string>();
  }
  config.unsupported = Unsupported(*json);
  return config;
}

}  // namespace attend

#include "core/parse_model.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/hugging_face_config.h"
#include "core/quote.h"
#include "core/read_only_file.h"

namespace attend {
namespace {

constexpr char kJsonFile[] = "attend.json";
constexpr uint64_t kMaxJsonBytes = 256 << 20;  // item_names may be a vocabulary

absl::Status KeyError(absl::string_view key, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(kJsonFile, ": ", key, ": ", problem));
}

std::string Shape(const ParameterSource& source) {
  return absl::StrCat(Quoted(source.tensor), " [", source.rows,
                      source.columns == 1 ? "" : absl::StrCat(", ", source.columns), "]");
}

// `key` of attend.json, when given, must be what the tensors say.
absl::Status Agree(absl::string_view key, const std::optional<int64_t>& given, int64_t from_tensors,
                   absl::string_view because) {
  if (!given || *given == from_tensors) return absl::OkStatus();
  return KeyError(key, absl::StrCat(*given, ", but ", because, " makes it ", from_tensors));
}

// `rows` shared out in blocks of `each`.
absl::StatusOr<int64_t> Divide(const ParameterSource& source, int64_t each, absl::string_view what,
                               absl::string_view key) {
  if (source.rows % each == 0) return source.rows / each;
  return KeyError(key, absl::StrCat(each, ", but the ", source.rows, " ", what, " of tensor ",
                                    Shape(source), " can't be shared out among them"));
}

absl::Status ResolveFeatures(const AttendJson& json, const LayerTensors& layer,
                             AttentionConfig* config) {
  config->d_f = layer.query_weight.columns;
  for (const ParameterSource* weight : {&layer.key_weight, &layer.value_weight}) {
    if (weight->columns == config->d_f) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensors ", Shape(layer.query_weight), " and ", Shape(*weight),
                     ": the columns are d_f of both, ", config->d_f, " and ", weight->columns));
  }
  return Agree("d_f", json.d_f, config->d_f, absl::StrCat("tensor ", Shape(layer.query_weight)));
}

absl::Status ResolveHeads(const AttendJson& json, const LayerTensors& layer,
                          AttentionConfig* config) {
  const ParameterSource& query = layer.query_weight;
  if (!json.num_heads && !json.d_k && layer.multi_head) {
    return KeyError("num_heads", absl::StrCat("missing: the layout ", Quoted(layer.layout),
                                              " with ", Shape(query), " needs num_heads or d_k"));
  }
  absl::StatusOr<int64_t> size;
  if (json.num_heads || !json.d_k) {
    config->num_heads = json.num_heads.value_or(1);
    size = Divide(query, config->num_heads, "query features", "num_heads");
    if (!size.ok()) return size.status();
    config->d_k = *size;
    const absl::Status agree =
        Agree("d_k", json.d_k, config->d_k,
              absl::StrCat("tensor ", Shape(query), " with num_heads ", config->num_heads));
    if (!agree.ok()) return agree;
  } else {
    config->d_k = *json.d_k;
    size = Divide(query, config->d_k, "query features", "d_k");
    if (!size.ok()) return size.status();
    config->num_heads = *size;
  }
  return absl::OkStatus();
}

absl::Status ResolveKeyHeads(const AttendJson& json, const LayerTensors& layer,
                             AttentionConfig* config) {
  absl::StatusOr<int64_t> size = Divide(layer.key_weight, config->d_k, "key features", "d_k");
  if (!size.ok()) return size.status();
  config->num_key_heads = *size;
  absl::Status agree =
      Agree("num_key_heads", json.num_key_heads, config->num_key_heads,
            absl::StrCat("tensor ", Shape(layer.key_weight), " with d_k ", config->d_k));
  if (!agree.ok()) return agree;
  if (config->num_heads % config->num_key_heads != 0) {
    return KeyError("num_key_heads",
                    absl::StrCat("the ", config->num_key_heads, " key heads of tensor ",
                                 Shape(layer.key_weight), " don't divide the ", config->num_heads,
                                 " heads of tensor ", Shape(layer.query_weight)));
  }
  size = Divide(layer.value_weight, config->num_key_heads, "value features", "num_key_heads");
  if (!size.ok()) return size.status();
  config->d_v = *size;
  return Agree("d_v", json.d_v, config->d_v,
               absl::StrCat("tensor ", Shape(layer.value_weight), " with ", config->num_key_heads,
                            " key heads"));
}

// Biases and the output projection must fit the weights.
absl::Status CheckSizes(const LayerTensors& layer, const AttentionConfig& config) {
  const std::pair<const ParameterSource*, const ParameterSource*> pairs[] = {
      {&layer.query_weight, &layer.query_bias},
      {&layer.key_weight, &layer.key_bias},
      {&layer.value_weight, &layer.value_bias},
      {&layer.output_weight, &layer.output_bias}};
  for (const auto& [weight, bias] : pairs) {
    if (bias->absent() || bias->rows == weight->rows) continue;
    return absl::InvalidArgumentError(absl::StrCat("tensors ", Shape(*weight), " and ",
                                                   Shape(*bias),
                                                   ": a bias has one element for each row"));
  }
  const int64_t d_heads = config.num_heads * config.d_v;
  if (layer.output_weight.absent() || layer.output_weight.columns == d_heads) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Shape(layer.output_weight),
                                                 ": expected ", d_heads, " columns, num_heads ",
                                                 config.num_heads, " times d_v ", config.d_v));
}

absl::Status ResolveNames(const AttendJson& json, AttentionConfig* config) {
  const int64_t names = static_cast<int64_t>(json.feature_names.size());
  if (names > 0 && names != config->d_f) {
    return KeyError("feature_names", absl::StrCat(names, " names for d_f ", config->d_f));
  }
  for (const auto& [name, features] : json.item_names) {
    if (static_cast<int64_t>(features.size()) == config->d_f) continue;
    return KeyError("item_names", absl::StrCat(Quoted(name), " has ", features.size(),
                                               " features, expected d_f ", config->d_f));
  }
  config->feature_names = json.feature_names;
  config->item_names = json.item_names;
  return absl::OkStatus();
}

// The rows of `source`, [rows, columns], row major whichever way they are stored.
absl::StatusOr<FloatBuffer> ReadParameter(const Checkpoint& checkpoint,
                                          const ParameterSource& source) {
  if (source.absent()) return FloatBuffer();
  absl::StatusOr<FloatBuffer> stored = checkpoint.ReadFloats(source.tensor);
  if (!stored.ok()) return stored;
  const int64_t count = source.rows * source.columns;
  if (stored->size() == count && !source.transposed) return stored;
  FloatBuffer rows(count);
  const int64_t all_rows = stored->size() / source.columns;
  if (!source.transposed) {
    std::copy_n(stored->data() + source.first_row * source.columns, count, rows.data());
    return rows;
  }
  for (int64_t row = 0; row < source.rows; ++row) {
    for (int64_t column = 0; column < source.columns; ++column) {
      rows.data()[row * source.columns + column] =
          stored->data()[column * all_rows + source.first_row + row];
    }
  }
  return rows;
}

absl::StatusOr<AttentionWeights> ReadWeights(const Checkpoint& checkpoint,
                                             const LayerTensors& layer) {
  AttentionWeights weights;
  const std::pair<const ParameterSource*, FloatBuffer*> parameters[] = {
      {&layer.query_weight, &weights.query_weight},   {&layer.query_bias, &weights.query_bias},
      {&layer.key_weight, &weights.key_weight},       {&layer.key_bias, &weights.key_bias},
      {&layer.value_weight, &weights.value_weight},   {&layer.value_bias, &weights.value_bias},
      {&layer.output_weight, &weights.output_weight}, {&layer.output_bias, &weights.output_bias}};
  for (const auto& [source, target] : parameters) {
    absl::StatusOr<FloatBuffer> read = ReadParameter(checkpoint, *source);
    if (!read.ok()) return read.status();
    *target = *std::move(read);
  }
  return weights;
}

}  // namespace

absl::StatusOr<AttentionConfig> ResolveConfig(const AttendJson& json, const LayerTensors& layer) {
  AttentionConfig config;
  absl::Status status = ResolveFeatures(json, layer, &config);
  if (status.ok()) status = ResolveHeads(json, layer, &config);
  if (status.ok()) status = ResolveKeyHeads(json, layer, &config);
  if (status.ok()) status = CheckSizes(layer, config);
  if (status.ok()) status = ResolveNames(json, &config);
  if (!status.ok()) return status;
  if (!json.causal && layer.asks_causal) {
    return KeyError("causal", absl::StrCat("missing: models in the layout ", Quoted(layer.layout),
                                           " are causal; say true, or false on purpose"));
  }
  config.causal = json.causal.value_or(false);
  config.scale = json.scale.value_or(static_cast<float>(1 / std::sqrt(double(config.d_k))));
  config.normalizer = json.normalizer;
  config.max_sequence_length = json.max_sequence_length;
  return config;
}

absl::StatusOr<ParsedModel> ParseModel(const std::string& version_directory) {
  const auto in_directory = [&](const absl::Status& status, absl::string_view file) {
    return absl::Status(status.code(),
                        absl::StrCat(version_directory, "/", file, status.message()));
  };
  const absl::StatusOr<std::string> text =
      ReadTextFile(absl::StrCat(version_directory, "/", kJsonFile), kMaxJsonBytes);
  if (!text.ok()) return in_directory(text.status(), absl::StrCat(kJsonFile, ": "));
  const absl::StatusOr<AttendJson> json = ParseAttendJson(*text);
  if (!json.ok()) return in_directory(json.status(), absl::StrCat(kJsonFile, ": "));
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(version_directory);
  if (!checkpoint.ok()) return in_directory(checkpoint.status(), "");
  const absl::StatusOr<HuggingFaceConfig> beside = ReadHuggingFaceConfig(version_directory);
  if (!beside.ok()) return in_directory(beside.status(), "");
  if (!beside->unsupported.empty()) {
    return in_directory(absl::InvalidArgumentError(beside->unsupported + " is not supported"),
                        "config.json: ");
  }
  const absl::StatusOr<LayerTensors> layer =
      RecognizeLayer(checkpoint->tensors(), json->tensor_prefix);
  if (!layer.ok()) return in_directory(layer.status(), checkpoint->name() + ": ");
  absl::StatusOr<AttentionConfig> config = ResolveConfig(*json, *layer);
  if (!config.ok()) return in_directory(config.status(), "");
  absl::StatusOr<AttentionWeights> weights = ReadWeights(*checkpoint, *layer);
  if (!weights.ok()) return in_directory(weights.status(), "");
  weights->d_out =
      layer->output_weight.absent() ? config->num_heads * config->d_v : layer->output_weight.rows;
  return ParsedModel{*std::move(config), *std::move(weights), json->batching};
}

}  // namespace attend

#include "core/checkpoint_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <filesystem>
#include <map>
#include <tuple>

#include "core/checkpoint.h"
#include "core/hugging_face_config.h"
#include "core/parse_model.h"
#include "core/quote.h"
#include "core/strict_json.h"
#include "core/tensor_layouts.h"

namespace attend {
namespace {

using Layers = std::vector<std::pair<std::string, absl::StatusOr<LayerTensors>>>;

std::string TensorsText(const TensorMap& tensors) {
  std::map<std::string, int64_t> by_dtype;
  uint64_t bytes = 0;
  for (const auto& [name, info] : tensors) {
    ++by_dtype[info.dtype];
    bytes += info.end - info.begin;
  }
  return absl::StrCat(tensors.size(), " tensors, ", bytes,
                      " bytes: ", absl::StrJoin(by_dtype, ", ", absl::PairFormatter(" ")), "\n");
}

std::string ShapeOf(const ParameterSource& weight, const ParameterSource& bias) {
  if (weight.absent()) return "none";
  return absl::StrCat("[", weight.rows, ", ", weight.columns, "]", weight.transposed ? "^T" : "",
                      bias.absent() ? "" : " + bias");
}

std::string LayerText(const std::string& prefix, const LayerTensors& layer,
                      const TensorMap& tensors) {
  return absl::StrCat("  ", Quoted(prefix), ": ", layer.layout, ", ",
                      tensors.at(layer.query_weight.tensor).dtype, ", query ",
                      ShapeOf(layer.query_weight, layer.query_bias), ", key ",
                      ShapeOf(layer.key_weight, layer.key_bias), ", value ",
                      ShapeOf(layer.value_weight, layer.value_bias), ", output ",
                      ShapeOf(layer.output_weight, layer.output_bias), "\n");
}

std::string LayersText(const Layers& layers, const TensorMap& tensors) {
  if (layers.empty()) return "no attention layer in a known layout\n";
  std::string text = absl::StrCat(layers.size(), " attention layers, by tensor_prefix:\n");
  for (const auto& [prefix, layer] : layers) {
    absl::StrAppend(&text, layer.ok() ? LayerText(prefix, *layer, tensors)
                                      : absl::StrCat("  ", Quoted(prefix), ": can't be served: ",
                                                     layer.status().message(), "\n"));
  }
  return text;
}

// An attend.json for the layer; what no file says is left for the reader to fill in.
std::string ReadyJson(const std::string& prefix, const LayerTensors& layer,
                      const HuggingFaceConfig& config) {
  Json json = {{"kind", "attention"}};
  if (!prefix.empty()) json["tensor_prefix"] = prefix;
  AttendJson said;
  said.causal = false;
  said.num_heads = config.num_heads;
  if (!layer.multi_head && !config.num_heads) said.num_heads = 1;
  const absl::StatusOr<AttentionConfig> resolved = ResolveConfig(said, layer);
  if (resolved.ok()) {
    json["d_f"] = resolved->d_f;
    json["d_k"] = resolved->d_k;
    json["d_v"] = resolved->d_v;
    json["num_heads"] = resolved->num_heads;
    json["num_key_heads"] = resolved->num_key_heads;
  } else {
    json["d_f"] = layer.query_weight.columns;
    json["num_heads"] = "FILL IN: the file doesn't say";
  }
  json["causal"] = layer.asks_causal;
  return json.dump(2) + "\n";
}

std::string PresentJsonText(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/attend.json")) return "";
  const absl::StatusOr<ParsedModel> model = ParseModel(directory);
  if (!model.ok())
    return absl::StrCat("\nits attend.json is refused: ", model.status().message(), "\n");
  return absl::StrCat("\nits attend.json is right: d_f ", model->config.d_f, ", num_heads ",
                      model->config.num_heads, ", d_k ", model->config.d_k, ", d_v ",
                      model->config.d_v, ", d_out ", model->weights.d_out, "\n");
}

}  // namespace

absl::StatusOr<std::string> DescribeCheckpoint(const std::string& directory,
                                               const std::string& tensor_prefix) {
  const auto refuse = [&](absl::string_view text) {
    return absl::InvalidArgumentError(absl::StrCat(directory, ": ", text));
  };
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(directory);
  if (!checkpoint.ok()) return refuse(checkpoint.status().message());
  const absl::StatusOr<HuggingFaceConfig> config = ReadHuggingFaceConfig(directory);
  if (!config.ok()) return refuse(config.status().message());
  const TensorMap& tensors = checkpoint->tensors();
  Layers layers;
  for (const std::string& prefix : FindLayerPrefixes(tensors)) {
    layers.emplace_back(prefix, RecognizeLayer(tensors, prefix));
  }
  std::string prefix = tensor_prefix;
  absl::StatusOr<LayerTensors> chosen = RecognizeLayer(tensors, prefix);
  for (const auto& layer : layers) {
    if (!tensor_prefix.empty() || chosen.ok()) break;
    std::tie(prefix, chosen) = layer;
  }
  std::string text = absl::StrCat(directory, "/", checkpoint->name(), ": ", TensorsText(tensors),
                                  LayersText(layers, tensors));
  if (!config->unsupported.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, "config.json: ", config->unsupported, " is not supported"));
  }
  if (!chosen.ok())
    return absl::InvalidArgumentError(text + std::string(chosen.status().message()));
  absl::StrAppend(&text, "\nattend.json for ", Quoted(prefix), ":\n",
                  ReadyJson(prefix, *chosen, *config), PresentJsonText(directory));
  return text;
}

}  // namespace attend

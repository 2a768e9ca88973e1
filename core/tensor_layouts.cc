#include "core/tensor_layouts.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/quote.h"

namespace attend {
namespace {

// Names without ".weight" and ".bias".
struct SeparateLayout {
  const char* name;
  bool multi_head;
  const char *query, *key, *value;
  std::vector<const char*> output;
};

const SeparateLayout kSeparate[] = {
    {"plain", false, "query", "key", "value", {"output"}},
    {"separate projections", true, "q_proj", "k_proj", "v_proj", {"out_proj", "o_proj"}},
    {"BERT", true, "self.query", "self.key", "self.value", {"output.dense"}},
    {"ViT", true, "attention.query", "attention.key", "attention.value", {"output.dense"}},
    {"DistilBERT", true, "q_lin", "k_lin", "v_lin", {"out_lin"}},
};

// Queries, keys and values as the thirds of one tensor.
struct FusedLayout {
  const char* name;
  const char *weight, *bias;
  const char* output;
  bool conv1d;  // may be stored as [in, out]
};

constexpr FusedLayout kFused[] = {
    {"torch.nn.MultiheadAttention", "in_proj_weight", "in_proj_bias", "out_proj", false},
    {"fused qkv", "qkv.weight", "qkv.bias", "proj", false},
    {"GPT-2", "c_attn.weight", "c_attn.bias", "c_proj", true},
};

// What would change the layer's meaning, by a part of a tensor's name.
constexpr struct {
  const char* part;
  const char* meaning;
} kRefused[] = {
    {"inv_freq", "rotary position embedding"},
    {"rotary", "rotary position embedding"},
    {"q_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim other than embed_dim"},
    {"k_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim other than embed_dim"},
    {"v_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim other than embed_dim"},
    {"bias_k", "torch.nn.MultiheadAttention with add_bias_kv"},
    {"bias_v", "torch.nn.MultiheadAttention with add_bias_kv"},
    {"q_norm", "normalised queries"},
    {"k_norm", "normalised keys"},
    {"distance_embedding", "relative position embedding"},
    {"relative_attention_bias", "a learned relative position bias"},
    {"relative_position_bias", "a learned relative position bias"},
    {"rel_pos", "a learned relative position bias"},
    {"logit_scale", "cosine attention with a learned scale"},
    {"sinks", "learned attention sinks"},
    {"lora_", "adapters that are not merged into the weights"},
    {"query_key_value", "queries, keys and values interleaved by head"},
};

absl::Status NotSupported(absl::string_view tensor, absl::string_view meaning) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Quoted(tensor), ": ", meaning, " is not supported"));
}

// A view of the tensors below a prefix, by their names without it.
class Layer {
 public:
  Layer(const TensorMap& tensors, const std::string& prefix) : prefix_(prefix) {
    for (auto it = tensors.lower_bound(prefix);
         it != tensors.end() && absl::StartsWith(it->first, prefix); ++it) {
      tensors_.emplace(it->first.substr(prefix.size()), &it->second);
    }
  }

  std::string Full(absl::string_view name) const { return absl::StrCat(prefix_, name); }
  const std::string& prefix() const { return prefix_; }
  const std::map<std::string, const TensorInfo*>& tensors() const { return tensors_; }
  bool Has(const std::string& name) const { return tensors_.count(name) > 0; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, info] : tensors_) names.push_back(name);
    return names;
  }

  absl::Status Error(absl::string_view tensor, absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(Full(tensor)), ": ", problem));
  }

  // The whole tensor as a parameter of `rank` dimensions; absent when there is none of this name.
  absl::StatusOr<ParameterSource> Whole(const std::string& name, std::size_t rank) {
    ParameterSource source;
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return source;
    used_.insert(name);
    const std::vector<uint64_t>& shape = it->second->shape;
    const bool fits =
        shape.size() == rank && std::all_of(shape.begin(), shape.end(), [](uint64_t n) {
          return n > 0 && n <= std::numeric_limits<int32_t>::max();
        });
    if (!fits) {
      return Error(name, absl::StrCat(Describe(*it->second), ", expected ",
                                      rank == 2 ? "a matrix" : "a vector", " that is not empty"));
    }
    source.tensor = Full(name);
    source.rows = static_cast<int64_t>(shape[0]);
    source.columns = rank == 2 ? static_cast<int64_t>(shape[1]) : 1;
    return source;
  }

  // "NAME.weight" and "NAME.bias".
  absl::Status Linear(const std::string& name, ParameterSource* weight, ParameterSource* bias) {
    absl::StatusOr<ParameterSource> found = Whole(name + ".weight", 2);
    if (!found.ok()) return found.status();
    *weight = *found;
    found = Whole(name + ".bias", 1);
    if (!found.ok()) return found.status();
    *bias = *found;
    if (weight->absent() && !bias->absent()) return Error(name + ".weight", "missing");
    return absl::OkStatus();
  }

  // A name that shares its first part with a parameter but is none would be left out silently.
  absl::Status CheckNothingLeftOut() const {
    const auto first_part = [](const std::string& name) { return name.substr(0, name.find('.')); };
    std::set<std::string> parts;
    for (const std::string& name : used_) parts.insert(first_part(name));
    // A block's other parts share BERT's "output": LayerNorm comes after the attention.
    parts.erase("output");
    for (const auto& [name, info] : tensors_) {
      if (parts.count(first_part(name)) && !used_.count(name)) {
        return Error(name, "belongs to a projection, but is no weight or bias of it");
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::string prefix_;
  std::map<std::string, const TensorInfo*> tensors_;
  std::set<std::string> used_;
};

absl::Status CheckRefused(const TensorMap& tensors, const Layer& layer) {
  for (const auto& [name, info] : layer.tensors()) {
    for (const auto& refused : kRefused) {
      if (absl::StrContains(name, refused.part)) {
        return NotSupported(layer.Full(name), refused.meaning);
      }
    }
  }
  // Rotary frequencies are often kept once for all layers.
  for (const auto& [name, info] : tensors) {
    if (absl::EndsWith(name, "inv_freq")) return NotSupported(name, "rotary position embedding");
  }
  return absl::OkStatus();
}

absl::StatusOr<LayerTensors> ReadSeparate(const SeparateLayout& layout, Layer& layer) {
  LayerTensors found;
  found.layout = layout.name;
  found.multi_head = layout.multi_head;
  const struct {
    const char* name;
    ParameterSource *weight, *bias;
  } projections[] = {{layout.query, &found.query_weight, &found.query_bias},
                     {layout.key, &found.key_weight, &found.key_bias},
                     {layout.value, &found.value_weight, &found.value_bias}};
  for (const auto& projection : projections) {
    absl::Status status = layer.Linear(projection.name, projection.weight, projection.bias);
    if (!status.ok()) return status;
    if (projection.weight->absent()) {
      return layer.Error(absl::StrCat(projection.name, ".weight"),
                         absl::StrCat("missing from a layer in the layout ", layout.name));
    }
  }
  for (const char* name : layout.output) {
    const bool taken = !found.output_weight.absent();
    ParameterSource weight, bias;
    absl::Status status = layer.Linear(name, &weight, &bias);
    if (!status.ok()) return status;
    if (weight.absent()) continue;
    if (taken) {
      return layer.Error(
          absl::StrCat(name, ".weight"),
          absl::StrCat("a second output projection beside ", Quoted(found.output_weight.tensor)));
    }
    found.output_weight = weight;
    found.output_bias = bias;
  }
  return found;
}

// Swaps a Conv1D's stored [in, out] into [out, in].
void Transpose(ParameterSource* weight) {
  std::swap(weight->rows, weight->columns);
  weight->transposed = true;
}

// Whether a fused weight is stored as [in, out]: the size of its bias, or else three times the
// other side, tells which side is out.
absl::StatusOr<bool> IsTransposed(const Layer& layer, const char* name,
                                  const ParameterSource& weight, const ParameterSource& bias) {
  const bool out_first =
      bias.absent() ? weight.rows == 3 * weight.columns : weight.rows == bias.rows;
  const bool out_last =
      bias.absent() ? weight.columns == 3 * weight.rows : weight.columns == bias.rows;
  if (out_first != out_last) return out_last;
  return layer.Error(name, absl::StrCat("[", weight.rows, ", ", weight.columns,
                                        "] doesn't tell whether it is stored as [in, out] "
                                        "(GPT-2's Conv1D) or as [out, in]"));
}

absl::StatusOr<LayerTensors> ReadFused(const FusedLayout& layout, Layer& layer) {
  LayerTensors found;
  found.layout = layout.name;
  found.asks_causal = layout.conv1d;
  absl::StatusOr<ParameterSource> weight = layer.Whole(layout.weight, 2);
  if (!weight.ok()) return weight.status();
  absl::StatusOr<ParameterSource> bias = layer.Whole(layout.bias, 1);
  if (!bias.ok()) return bias.status();
  absl::Status status = layer.Linear(layout.output, &found.output_weight, &found.output_bias);
  if (!status.ok()) return status;
  if (layout.conv1d) {
    const absl::StatusOr<bool> transposed = IsTransposed(layer, layout.weight, *weight, *bias);
    if (!transposed.ok()) return transposed.status();
    if (*transposed) {
      Transpose(&*weight);
      if (!found.output_weight.absent()) Transpose(&found.output_weight);
    } else {
      found.layout = "GPT-2 names with torch.nn.Linear";
    }
  }
  if (weight->rows % 3 != 0) {
    return layer.Error(layout.weight, absl::StrCat("has ", weight->rows,
                                                   " outputs, expected queries, keys and values "
                                                   "of the same size, a multiple of 3"));
  }
  if (!bias->absent() && bias->rows != weight->rows) {
    return layer.Error(layout.bias, absl::StrCat("[", bias->rows, "], but ", layout.weight, " has ",
                                                 weight->rows, " outputs"));
  }
  ParameterSource* const weights[] = {&found.query_weight, &found.key_weight, &found.value_weight};
  ParameterSource* const biases[] = {&found.query_bias, &found.key_bias, &found.value_bias};
  const int64_t third = weight->rows / 3;
  for (int64_t i = 0; i < 3; ++i) {
    *weights[i] = *weight;
    weights[i]->first_row = i * third;
    weights[i]->rows = third;
    if (bias->absent()) continue;
    *biases[i] = *bias;
    biases[i]->first_row = i * third;
    biases[i]->rows = third;
  }
  return found;
}

absl::Status UnknownLayout(const TensorMap& tensors, const Layer& layer) {
  std::string message = absl::StrCat("no known tensor layout at tensor_prefix ",
                                     Quoted(layer.prefix()), "; the names ");
  if (layer.tensors().empty()) {
    std::vector<std::string> all;
    for (const auto& [name, info] : tensors) all.push_back(name);
    absl::StrAppend(&message, "found in the file are ", all.empty() ? "none" : QuotedList(all));
  } else {
    absl::StrAppend(&message, "found there are ", QuotedList(layer.names()));
  }
  const std::vector<std::string> prefixes = FindLayerPrefixes(tensors);
  if (!prefixes.empty()) {
    absl::StrAppend(&message, "; layers are at tensor_prefix ", QuotedList(prefixes, 3));
  }
  return absl::InvalidArgumentError(message);
}

// The part of `name` before `ending`, when it is a whole part.
std::optional<std::string> PrefixBefore(const std::string& name, const std::string& ending) {
  if (!absl::EndsWith(name, ending)) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - ending.size());
  if (!prefix.empty() && prefix.back() != '.') return std::nullopt;
  return prefix;
}

// Text with its numbers padded, so that "layer.2" sorts before "layer.10".
std::string SortKey(const std::string& text) {
  std::string key, number;
  const auto flush = [&] {
    if (!number.empty()) key += std::string(20 - std::min<std::size_t>(20, number.size()), '0');
    key += number;
    number.clear();
  };
  for (const char c : text) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      number += c;
    } else {
      flush();
      key += c;
    }
  }
  flush();
  return key;
}

}  // namespace

absl::StatusOr<LayerTensors> RecognizeLayer(const TensorMap& tensors, const std::string& prefix) {
  Layer layer(tensors, prefix);
  absl::Status status = CheckRefused(tensors, layer);
  if (!status.ok()) return status;
  std::vector<const char*> fitting;
  const SeparateLayout* separate = nullptr;
  for (const SeparateLayout& layout : kSeparate) {
    for (const char* name : {layout.query, layout.key, layout.value}) {
      if (!layer.Has(absl::StrCat(name, ".weight")) || separate == &layout) continue;
      separate = &layout;
      fitting.push_back(layout.name);
    }
  }
  const FusedLayout* fused = nullptr;
  for (const FusedLayout& layout : kFused) {
    if (!layer.Has(layout.weight)) continue;
    fused = &layout;
    fitting.push_back(layout.name);
  }
  if (fitting.empty()) return UnknownLayout(tensors, layer);
  if (fitting.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "more than one tensor layout at tensor_prefix ", Quoted(prefix), ": ", QuotedList(fitting),
        "; the names found there are ", QuotedList(layer.names())));
  }
  absl::StatusOr<LayerTensors> found =
      separate != nullptr ? ReadSeparate(*separate, layer) : ReadFused(*fused, layer);
  if (!found.ok()) return found;
  status = layer.CheckNothingLeftOut();
  if (!status.ok()) return status;
  return found;
}

std::vector<std::string> FindLayerPrefixes(const TensorMap& tensors) {
  std::vector<std::string> queries;
  for (const SeparateLayout& layout : kSeparate) {
    queries.push_back(absl::StrCat(layout.query, ".weight"));
  }
  for (const FusedLayout& layout : kFused) queries.push_back(layout.weight);
  // The longest fitting name first: "self.query.weight" is BERT's, not a plain layer's in "self.".
  std::sort(queries.begin(), queries.end(), [](const std::string& a, const std::string& b) {
    return std::pair(b.size(), a) < std::pair(a.size(), b);
  });
  std::vector<std::string> prefixes;
  for (const auto& [name, info] : tensors) {
    std::optional<std::string> best;
    for (const std::string& query : queries) {
      const std::optional<std::string> prefix = PrefixBefore(name, query);
      if (!prefix) continue;
      if (!best) best = prefix;
      if (RecognizeLayer(tensors, *prefix).ok()) {
        best = prefix;
        break;
      }
    }
    if (best) prefixes.push_back(*best);
  }
  std::sort(prefixes.begin(), prefixes.end(),
            [](const std::string& a, const std::string& b) { return SortKey(a) < SortKey(b); });
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  return prefixes;
}

}  // namespace attend

#include "core/attend_json.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/quote.h"
#include "core/strict_json.h"

namespace attend {
namespace {

absl::Status Expected(const Json& value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(Excerpt(value), ", expected ", expected));
}

template <typename Target>
absl::Status ReadCount(const Json& value, Target* target) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > kLimit) {
    return Expected(value, "a whole number from 1 to 2147483647");
  }
  *target = value.get<int64_t>();
  return absl::OkStatus();
}

bool IsFloat32(const Json& value) {
  return value.is_number() && std::isfinite(static_cast<float>(value.get<double>()));
}

absl::Status ReadKind(const Json& value, AttendJson*) {
  return value == "attention" ? absl::OkStatus() : Expected(value, "\"attention\"");
}

absl::Status ReadScale(const Json& value, AttendJson* model) {
  if (value == "inverse_sqrt_d_k") return absl::OkStatus();
  if (value != "none" && !IsFloat32(value)) {
    return Expected(value, "\"inverse_sqrt_d_k\", \"none\" or a number that is finite as float32");
  }
  model->scale = value == "none" ? 1.0f : value.get<float>();
  return absl::OkStatus();
}

absl::Status ReadNormalizer(const Json& value, AttendJson* model) {
  static constexpr std::pair<const char*, Normalizer> kNames[] = {
      {"softmax", Normalizer::kSoftmax},     {"softmax_one", Normalizer::kSoftmaxOne},
      {"sigmoid", Normalizer::kSigmoid},     {"relu", Normalizer::kRelu},
      {"sparsemax", Normalizer::kSparsemax}, {"none", Normalizer::kNone}};
  for (const auto& [name, normalizer] : kNames) {
    if (value != name) continue;
    model->normalizer = normalizer;
    return absl::OkStatus();
  }
  return Expected(value,
                  "\"softmax\", \"softmax_one\", \"sigmoid\", \"relu\", \"sparsemax\" or \"none\"");
}

absl::Status ReadCausal(const Json& value, AttendJson* model) {
  if (!value.is_boolean()) return Expected(value, "true or false");
  model->causal = value.get<bool>();
  return absl::OkStatus();
}

absl::Status ReadTensorPrefix(const Json& value, AttendJson* model) {
  if (!value.is_string()) {
    return Expected(value, "a string such as \"encoder.layer.0.attention.\"");
  }
  model->tensor_prefix = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadFeatureNames(const Json& value, AttendJson* model) {
  if (!value.is_array()) return Expected(value, "an array of names");
  std::set<std::string> names;
  for (const Json& name : value) {
    if (!name.is_string() || name.get<std::string>().empty()) return Expected(name, "a name");
    if (!names.insert(name.get<std::string>()).second) {
      return absl::InvalidArgumentError(absl::StrCat(Excerpt(name), " comes twice"));
    }
    model->feature_names.push_back(name.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadItemNames(const Json& value, AttendJson* model) {
  if (!value.is_object()) {
    return Expected(value, "an object of names and features, such as {\"cat\": [1, 0.5]}");
  }
  std::set<std::string> names;
  for (const auto& [name, features] : value.items()) {
    // `attend explain` looks them up whatever their case.
    if (name.empty() || !names.insert(absl::AsciiStrToLower(name)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(name), ", expected names that are not empty and differ by more than case"));
    }
    std::vector<float> numbers;
    if (!features.is_array()) {
      return Expected(features, absl::StrCat("an array of the features of ", Quoted(name)));
    }
    for (const Json& feature : features) {
      if (!IsFloat32(feature)) {
        return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " holds ", Excerpt(feature),
                                                       ", expected numbers finite as float32"));
      }
      numbers.push_back(feature.get<float>());
    }
    model->item_names.emplace_back(name, std::move(numbers));
  }
  return absl::OkStatus();
}

absl::Status ReadDelay(const Json& value, AttendJson* model) {
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 60'000)) {
    return Expected(value, "milliseconds from 0 to 60000");
  }
  model->batching.max_queue_delay_ms = value.get<double>();
  return absl::OkStatus();
}

absl::Status ReadWeight(const Json& value, AttendJson* model) {
  if (!value.is_number() || !(value.get<double>() >= 1e-3 && value.get<double>() <= 1e3)) {
    return Expected(value, "a share beside other models from 0.001 to 1000");
  }
  model->batching.weight = value.get<double>();
  return absl::OkStatus();
}

template <auto Field>
absl::Status ReadDimension(const Json& value, AttendJson* model) {
  return ReadCount(value, &(model->*Field));
}

template <auto Field>
absl::Status ReadBatching(const Json& value, AttendJson* model) {
  return ReadCount(value, &(model->batching.*Field));
}

struct Key {
  const char* name;
  absl::Status (*read)(const Json& value, AttendJson* model);
};

constexpr Key kKeys[] = {
    {"kind", ReadKind},
    {"d_f", ReadDimension<&AttendJson::d_f>},
    {"d_k", ReadDimension<&AttendJson::d_k>},
    {"d_v", ReadDimension<&AttendJson::d_v>},
    {"num_heads", ReadDimension<&AttendJson::num_heads>},
    {"num_key_heads", ReadDimension<&AttendJson::num_key_heads>},
    {"scale", ReadScale},
    {"normalizer", ReadNormalizer},
    {"causal", ReadCausal},
    {"tensor_prefix", ReadTensorPrefix},
    {"max_sequence_length", ReadDimension<&AttendJson::max_sequence_length>},
    {"feature_names", ReadFeatureNames},
    {"item_names", ReadItemNames},
    {"max_batch_items", ReadBatching<&ModelBatchingOptions::max_batch_items>},
    {"max_batch_requests", ReadBatching<&ModelBatchingOptions::max_batch_requests>},
    {"max_queued_requests", ReadBatching<&ModelBatchingOptions::max_queued_requests>},
    {"max_queue_delay_ms", ReadDelay},
    {"weight", ReadWeight},
};

absl::Status ReadKey(const std::string& name, const Json& value, AttendJson* model) {
  for (const Key& key : kKeys) {
    if (name != key.name) continue;
    const absl::Status read = key.read(value, model);
    if (read.ok()) return read;
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", read.message()));
  }
  const std::string known = absl::StrJoin(
      kKeys, ", ", [](std::string* out, const Key& key) { absl::StrAppend(out, key.name); });
  return absl::InvalidArgumentError(absl::StrCat("unknown key ", Quoted(name), "; known are ",
                                                 known, "; a comment begins with \"_\""));
}

}  // namespace

absl::StatusOr<AttendJson> ParseAttendJson(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseStrictJson(text);
  if (!json.ok()) return json.status();
  if (!json->is_object()) return Expected(*json, "a JSON object");
  if (!json->contains("kind")) {
    return absl::InvalidArgumentError("kind: missing, expected \"attention\"");
  }
  AttendJson model;
  for (const auto& [name, value] : json->items()) {
    if (!name.empty() && name[0] == '_') continue;
    const absl::Status read = ReadKey(name, value, &model);
    if (!read.ok()) return read;
  }
  return model;
}

}  // namespace attend

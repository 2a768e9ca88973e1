#include "tests/core/oracle_case.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "client/npy.h"

namespace attend {
namespace {

std::string Directory(const std::string& name) {
  return std::string(ATTEND_ORACLE_DIR) + "/" + name;
}

// Nothing when the case has no such file.
absl::StatusOr<client::NpyArray> ReadIfThere(const std::string& path) {
  if (!std::filesystem::exists(path)) return client::NpyArray{};
  return client::ReadNpy(path);
}

absl::Status ReadDoubles(const std::string& path, std::vector<double>* to) {
  const auto array = ReadIfThere(path);
  if (!array.ok() || array->bytes.empty()) return array.status();
  auto values = client::ToDoubles(*array);
  if (values.ok()) *to = *std::move(values);
  return values.status();
}

absl::Status ReadFloats(const std::string& path, std::vector<float>* to) {
  std::vector<double> values;
  absl::Status status = ReadDoubles(path, &values);
  to->assign(values.begin(), values.end());
  return status;
}

absl::Status ReadMask(const std::string& path, std::vector<uint8_t>* to) {
  const auto array = ReadIfThere(path);
  if (array.ok()) to->assign(array->bytes.begin(), array->bytes.end());
  return array.status();
}

}  // namespace

std::vector<std::string> OracleCaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_ORACLE_DIR)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<OracleCase> ReadOracleCase(const std::string& name) {
  OracleCase c;
  c.name = name;
  auto model = ParseModel(Directory(name));
  if (!model.ok()) return model.status();
  c.model = *std::move(model);
  const std::string at = Directory(name) + "/";
  for (const absl::Status& status :
       {ReadFloats(at + "items.npy", &c.items),
        ReadFloats(at + "attention_bias.npy", &c.attention_bias),
        ReadMask(at + "key_mask.npy", &c.key_mask),
        ReadMask(at + "attention_mask.npy", &c.attention_mask),
        ReadDoubles(at + "scores.npy", &c.scores), ReadDoubles(at + "weights.npy", &c.weights),
        ReadDoubles(at + "values.npy", &c.values)}) {
    if (!status.ok()) return status;
  }
  const int64_t d_f = c.model.config.d_f, n = static_cast<int64_t>(c.items.size()) / d_f;
  c.input.items = {c.items.data(), n, d_f};
  c.input.key_mask = c.key_mask;
  if (!c.attention_mask.empty()) c.input.attention_mask = {c.attention_mask.data(), n, n};
  if (!c.attention_bias.empty()) c.input.attention_bias = {c.attention_bias.data(), n, n};
  c.input.want_scores = !c.scores.empty();
  c.input.want_weights = !c.weights.empty();
  return c;
}

}  // namespace attend

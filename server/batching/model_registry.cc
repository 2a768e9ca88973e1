#include "server/batching/model_registry.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

namespace attend {

void ModelRegistry::Put(std::shared_ptr<const ServedModel> model) {
  MutexLock lock(&mutex_);
  models_[model->name][model->version] = std::move(model);
}

absl::Status ModelRegistry::Remove(absl::string_view name, int64_t version) {
  MutexLock lock(&mutex_);
  const auto it = models_.find(std::string(name));
  if (it == models_.end() || it->second.erase(version) == 0) {
    return absl::NotFoundError(absl::StrCat("model ", name, "@", version, " is not served"));
  }
  if (it->second.empty()) models_.erase(it);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelRegistry::Find(
    absl::string_view name, absl::string_view version) const {
  int64_t number = 0;
  if (!version.empty() && (!absl::SimpleAtoi(version, &number) || number <= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "version: \"", version, "\" is no positive integer; leave it empty for the highest"));
  }
  MutexLock lock(&mutex_);
  const auto it = models_.find(std::string(name));
  if (it == models_.end()) {
    const std::string served = absl::StrJoin(
        models_, ", ", [](std::string* out, const auto& m) { absl::StrAppend(out, m.first); });
    return absl::NotFoundError(
        absl::StrCat("model: \"", name, "\" is not served; served are: ", served));
  }
  if (version.empty()) return it->second.rbegin()->second;
  const auto found = it->second.find(number);
  if (found == it->second.end()) {
    const std::string served = absl::StrJoin(
        it->second, ", ", [](std::string* out, const auto& v) { absl::StrAppend(out, v.first); });
    return absl::NotFoundError(absl::StrCat("version: model \"", name, "\" has no version ", number,
                                            "; served are: ", served));
  }
  return found->second;
}

std::vector<std::shared_ptr<const ServedModel>> ModelRegistry::List() const {
  std::vector<std::shared_ptr<const ServedModel>> all;
  MutexLock lock(&mutex_);
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, model] : versions) all.push_back(model);
  }
  return all;
}

}  // namespace attend

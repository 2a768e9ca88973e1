// Which models are served, by name and version.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/load_model.h"
#include "core/mutex.h"
#include "server/batching/cost_model.h"

namespace attend {

// One version of one model, ready to compute. Immutable, but for what is learnt of its cost.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  std::unique_ptr<const Model> model;
  ModelBatchingOptions batching;
  std::shared_ptr<CostModel> cost = std::make_shared<CostModel>();
};

// Thread-safe. Handing out shared ownership lets a version finish what it took after it is removed.
class ModelRegistry {
 public:
  // Adds or replaces name@version.
  void Put(std::shared_ptr<const ServedModel> model);
  // NOT_FOUND when it is not there.
  absl::Status Remove(absl::string_view name, int64_t version);
  // `version` "" is the highest. NOT_FOUND naming the model and what is served instead;
  // INVALID_ARGUMENT when `version` is no positive integer.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Find(absl::string_view name,
                                                          absl::string_view version) const;
  // Sorted by name, then version.
  std::vector<std::shared_ptr<const ServedModel>> List() const;

 private:
  using Versions = std::map<int64_t, std::shared_ptr<const ServedModel>>;
  mutable Mutex mutex_;
  std::map<std::string, Versions, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend

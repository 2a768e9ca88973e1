// Which models the server serves: at the start, and later by its repository.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/load_model.h"
#include "server/batching/model_registry.h"
#include "server/observe/metrics.h"

namespace attend {

struct ModelSource {
  std::string repository;      // empty: the demo model
  bool allow_partial = false;  // serve the rest when some are broken
};

// From disk to ready: loaded, measured, and so warm; `metrics` hears how long that took. Statuses
// name model and version.
absl::StatusOr<std::shared_ptr<const ServedModel>> LoadServedModel(const ModelVersion& version,
                                                                   Metrics* metrics);

// Puts every version of every model into the registry. Of each broken one the status goes to
// *broken. INVALID_ARGUMENT when any is broken and allow_partial is not set, or when none is left;
// the repository's own error when it can't be listed.
absl::Status LoadModels(const ModelSource& source, ModelRegistry* registry, Metrics* metrics,
                        std::vector<absl::Status>* broken);

}  // namespace attend

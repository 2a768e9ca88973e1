// Which models the server starts with.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "server/batching/model_registry.h"

namespace attend {

struct ModelSource {
  std::string repository;      // empty: the demo model
  bool allow_partial = false;  // serve the rest when some are broken
};

// Loads every version of every model, warms each by a real forward of a few items, and puts it into
// the registry. Of each broken one the status goes to *broken. INVALID_ARGUMENT when any is broken
// and allow_partial is not set, or when none is left; the repository's own error when it can't be
// listed.
absl::Status LoadModels(const ModelSource& source, ModelRegistry* registry,
                        std::vector<absl::Status>* broken);

}  // namespace attend

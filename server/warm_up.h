// The first forward of a model, before anybody waits for it.
#pragma once

#include <absl/status/status.h>

#include "core/model.h"

namespace attend {

// Computes sequences of a few lengths, so that no caller pays for what the first one sets up. The
// status of the first that fails.
absl::Status WarmUp(const Model& model);

}  // namespace attend

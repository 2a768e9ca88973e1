// The embedded demo model: hand-made weights over named features of words (docs/demo-model.md).
#pragma once

#include <absl/status/statusor.h>

#include "core/load_model.h"

namespace attend {

inline constexpr char kDemoModelName[] = "demo";

// INTERNAL when oneDNN can't be set up; the weights themselves are right by construction.
absl::StatusOr<LoadedModel> MakeDemoModel();

}  // namespace attend

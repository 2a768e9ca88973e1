// The embedded demo model: hand-made weights over named features of words (docs/demo-model.md).
#pragma once

#include <absl/status/statusor.h>

#include "core/load_model.h"
#include "core/parse_model.h"

namespace attend {

inline constexpr char kDemoModelName[] = "demo";

// One head in which every kind of word asks for another: `it` for the animate noun before it.
// INTERNAL when oneDNN can't be set up; the weights themselves are right by construction.
absl::StatusOr<LoadedModel> MakeDemoModel();

// The numbers that MakeDemoModel packs.
ParsedModel DemoParameters();

}  // namespace attend

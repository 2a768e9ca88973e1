// A model's folder, read and validated up to the point where the numbers are ready to be packed.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "core/attend_json.h"
#include "core/attention_parameters.h"
#include "core/checkpoint.h"
#include "core/load_model.h"
#include "core/tensor_layouts.h"

namespace attend {

struct ParsedModel {
  AttentionConfig config;
  AttentionWeights weights;
  ModelBatchingOptions batching;
};

// What LoadModel does short of making the model; the same errors.
absl::StatusOr<ParsedModel> ParseModel(const std::string& version_directory);

// attend.json held against the shapes of the layer's tensors: every dimension is decided by one or
// both. INVALID_ARGUMENT that names both when they disagree, or the key that is missing.
absl::StatusOr<AttentionConfig> ResolveConfig(const AttendJson& json, const LayerTensors& layer);

}  // namespace attend

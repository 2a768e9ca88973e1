// From models/NAME/VERSION/ on disk to a Model.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model.h"

namespace attend {

// What attend.json may say about batching this model; absent means the server's own setting.
struct ModelBatchingOptions {
  std::optional<int64_t> max_batch_items;
  std::optional<int64_t> max_batch_requests;
  std::optional<int64_t> max_queued_requests;
  std::optional<double> max_queue_delay_ms;
  std::optional<double> weight;  // share of the machine beside other models; default 1
};

struct LoadedModel {
  std::unique_ptr<Model> model;
  ModelBatchingOptions batching;
};

// Reads attend.json and model.safetensors of `version_directory` whole, validates both wholly, and
// makes the model. INVALID_ARGUMENT says which file, which key or tensor, what it holds and what
// was expected; NOT_FOUND when a file is missing; RESOURCE_EXHAUSTED when memory is short.
absl::StatusOr<LoadedModel> LoadModel(const std::string& version_directory);

struct ModelVersion {
  std::string name;
  int64_t version = 0;
  std::string directory;
};

// The models/NAME/VERSION folders of a repository, sorted by name, then version. Entries that begin
// with '.' or '_' are passed over; a VERSION that is no positive integer, a NAME without versions
// and a path that leaves the repository (links, "..") are INVALID_ARGUMENT.
absl::StatusOr<std::vector<ModelVersion>> ListModelVersions(const std::string& repository);
// The same, but what is wrong with one entry goes to `broken` and the others are listed all the same.
absl::StatusOr<std::vector<ModelVersion>> ListModelVersions(const std::string& repository,
                                                            std::vector<absl::Status>* broken);

}  // namespace attend

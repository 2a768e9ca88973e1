#include "server/models.h"

#include <absl/strings/str_cat.h>

#include <memory>
#include <utility>

#include "core/demo_model.h"
#include "core/load_model.h"
#include "server/batching/calibrate.h"

namespace attend {
namespace {

absl::Status Serve(const std::string& name, int64_t version, LoadedModel loaded,
                   ModelRegistry* registry) {
  // Its forwards are also the warm-up: the first caller waits for no set-up.
  const auto curve = Calibrate(*loaded.model);
  if (!curve.ok()) return curve.status();
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->version = version;
  served->model = std::move(loaded.model);
  served->batching = loaded.batching;
  served->cost = std::make_shared<CostModel>(*curve);
  registry->Put(std::move(served));
  return absl::OkStatus();
}

absl::Status LoadVersion(const ModelVersion& version, ModelRegistry* registry) {
  auto loaded = LoadModel(version.directory);
  if (!loaded.ok()) return loaded.status();
  return Serve(version.name, version.version, *std::move(loaded), registry);
}

absl::Status LoadDemo(ModelRegistry* registry) {
  auto loaded = MakeDemoModel();
  if (!loaded.ok()) return loaded.status();
  return Serve(kDemoModelName, 1, *std::move(loaded), registry);
}

}  // namespace

absl::Status LoadModels(const ModelSource& source, ModelRegistry* registry,
                        std::vector<absl::Status>* broken) {
  if (source.repository.empty()) return LoadDemo(registry);
  auto versions = ListModelVersions(source.repository);
  if (!versions.ok()) return versions.status();
  for (const ModelVersion& version : *versions) {
    const absl::Status status = LoadVersion(version, registry);
    if (status.ok()) continue;
    broken->push_back(
        absl::Status(status.code(), absl::StrCat("model ", version.name, " version ",
                                                 version.version, ": ", status.message())));
  }
  if (!broken->empty() && !source.allow_partial) {
    return absl::InvalidArgumentError(
        absl::StrCat(broken->size(), " of ", versions->size(), " models in ", source.repository,
                     " are broken; mend or remove them, or serve the rest by --allow-partial"));
  }
  if (registry->List().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no model to serve in ", source.repository,
                     "; expected NAME/VERSION/attend.json and model.safetensors"));
  }
  return absl::OkStatus();
}

}  // namespace attend

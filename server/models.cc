#include "server/models.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "core/demo_model.h"
#include "server/batching/calibrate.h"

namespace attend {
namespace {

absl::StatusOr<std::shared_ptr<const ServedModel>> MakeServed(const std::string& name,
                                                              int64_t version, LoadedModel loaded) {
  // Its forwards are also the warm-up: the first caller waits for no set-up.
  const auto curve = Calibrate(*loaded.model);
  if (!curve.ok()) return curve.status();
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->version = version;
  served->model = std::move(loaded.model);
  served->batching = loaded.batching;
  served->cost = std::make_shared<CostModel>(*curve);
  return served;
}

absl::Status LoadDemo(ModelRegistry* registry) {
  auto loaded = MakeDemoModel();
  if (!loaded.ok()) return loaded.status();
  auto served = MakeServed(kDemoModelName, 1, *std::move(loaded));
  if (!served.ok()) return served.status();
  registry->Put(*std::move(served));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ServedModel>> LoadServedModel(const ModelVersion& version) {
  auto loaded = LoadModel(version.directory);
  absl::Status status = loaded.status();
  if (loaded.ok()) {
    auto served = MakeServed(version.name, version.version, *std::move(loaded));
    if (served.ok()) return served;
    status = served.status();
  }
  return absl::Status(status.code(), absl::StrCat("model ", version.name, " version ",
                                                  version.version, ": ", status.message()));
}

absl::Status LoadModels(const ModelSource& source, ModelRegistry* registry,
                        std::vector<absl::Status>* broken) {
  if (source.repository.empty()) return LoadDemo(registry);
  auto versions = ListModelVersions(source.repository, broken);
  if (!versions.ok()) return versions.status();
  for (const ModelVersion& version : *versions) {
    auto served = LoadServedModel(version);
    served.ok() ? registry->Put(*std::move(served)) : broken->push_back(served.status());
  }
  if (!broken->empty() && !source.allow_partial) {
    return absl::InvalidArgumentError(
        absl::StrCat(broken->size(), " entries of ", source.repository,
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

#include "server/models.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "core/demo_model.h"
#include "server/batching/calibrate.h"

namespace attend {
namespace {

using Served = absl::StatusOr<std::shared_ptr<const ServedModel>>;

Served MakeServed(const std::string& name, int64_t version, LoadedModel loaded) {
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

// `load` gives an absl::StatusOr<LoadedModel>.
template <typename Load>
Served MakeReady(const std::string& name, int64_t version, Metrics* metrics, Load load) {
  const Clock::time_point begin = Clock::now();
  auto loaded = load();
  if (!loaded.ok()) return loaded.status();
  auto served = MakeServed(name, version, *std::move(loaded));
  if (served.ok()) metrics->OnModelReady(name, Clock::now() - begin);
  return served;
}

absl::Status LoadDemo(ModelRegistry* registry, Metrics* metrics) {
  auto served = MakeReady(kDemoModelName, 1, metrics, MakeDemoModel);
  if (!served.ok()) return served.status();
  registry->Put(*std::move(served));
  return absl::OkStatus();
}

}  // namespace

Served LoadServedModel(const ModelVersion& version, Metrics* metrics) {
  auto served = MakeReady(version.name, version.version, metrics,
                          [&version] { return LoadModel(version.directory); });
  if (served.ok()) return served;
  return absl::Status(served.status().code(),
                      absl::StrCat("model ", version.name, " version ", version.version, ": ",
                                   served.status().message()));
}

absl::Status LoadModels(const ModelSource& source, ModelRegistry* registry, Metrics* metrics,
                        std::vector<absl::Status>* broken) {
  if (source.repository.empty()) return LoadDemo(registry, metrics);
  auto versions = ListModelVersions(source.repository, broken);
  if (!versions.ok()) return versions.status();
  for (const ModelVersion& version : *versions) {
    auto served = LoadServedModel(version, metrics);
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

// The model repository while the server runs: polled, and by calls where these are allowed.
#pragma once

#include <chrono>
#include <string>

#include "server/batching/model_watcher.h"
#include "server/observe/metrics.h"
#include "server/rpc/serving.h"

namespace attend {

// Thread-safe.
class Repository : public RepositoryControl {
 public:
  Repository(const std::string& directory, std::chrono::milliseconds poll, ModelRegistry* registry,
             Metrics* metrics);

  absl::Status Load(const std::string& model) override;
  absl::Status Unload(const std::string& model) override;

 private:
  ModelWatcher watcher_;
};

}  // namespace attend

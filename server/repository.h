// The model repository while the server runs: polled, and by calls where these are allowed.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "core/mutex.h"
#include "server/batching/model_watcher.h"
#include "server/observe/metrics.h"
#include "server/rpc/serving.h"

namespace attend {

// Thread-safe.
class Repository : public RepositoryControl {
 public:
  Repository(const std::string& directory, std::chrono::milliseconds poll, ModelRegistry* registry,
             Metrics* metrics);

  // Finishes the load or unload that it is at; those not begun are done with UNAVAILABLE.
  ~Repository() override;

  void Load(const std::string& model, Done done) override;
  void Unload(const std::string& model, Done done) override;

 private:
  struct Task {
    std::function<absl::Status()> work;
    Done done;
  };
  void Add(Task task);
  void RunTasks();

  ModelWatcher watcher_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread worker_;
};

}  // namespace attend

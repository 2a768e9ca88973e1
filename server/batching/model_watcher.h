// Follows a model repository while the server runs.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "core/load_model.h"
#include "core/mutex.h"
#include "server/batching/model_registry.h"
#include "server/batching/version_fingerprint.h"

namespace attend {

struct ModelEvent {
  enum class Kind { kLoaded, kRemoved, kFailed };
  Kind kind;
  std::string name;  // empty: the repository as a whole
  int64_t version = 0;
  absl::Status status;  // why it failed
};

struct WatcherOptions {
  std::string repository;
  std::chrono::milliseconds poll{0};  // 0: only when Poll is called
  // From disk to ready: loaded, measured, warm.
  std::function<absl::StatusOr<std::shared_ptr<const ServedModel>>(const ModelVersion&)> load;
  std::function<void(const ModelEvent&)> on_event;  // on the thread that caused it
};

// Keeps the registry equal to the repository. A version is taken up when its directory was
// published by a rename, or has been unchanged for two polls; so is a version whose files changed.
// One that fails to load is reported once and leaves what is served as it is; it is tried again
// when it changes. One that is gone for two polls is removed. What a replaced or removed version
// has taken it finishes. A repository that can't be listed changes nothing. Thread-safe. Every call
// may load a model and block for as long: not for polling threads.
class ModelWatcher {
 public:
  // What the registry holds already counts as loaded from what is on disk now.
  ModelWatcher(WatcherOptions options, ModelRegistry* registry);
  ~ModelWatcher();
  ModelWatcher(const ModelWatcher&) = delete;
  ModelWatcher& operator=(const ModelWatcher&) = delete;

  void Poll();
  // Loads a version from disk, changed or not; "" is the highest there. NOT_FOUND when it is not in
  // the repository, INVALID_ARGUMENT when `version` is no positive integer, else the load's error.
  absl::Status Load(absl::string_view name, absl::string_view version);
  // Serves a version no more, until its files change or Load is called; "" is every version of the
  // model. NOT_FOUND when it is not served.
  absl::Status Unload(absl::string_view name, absl::string_view version);

 private:
  using Key = std::pair<std::string, int64_t>;
  struct Record {
    std::optional<VersionFingerprint> seen;     // at the last poll
    std::optional<VersionFingerprint> settled;  // loaded, failed or unloaded as this
    int absences = 0;
  };

  absl::Status LoadLocked(const ModelVersion& version, const VersionFingerprint& fingerprint)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Consider(const ModelVersion& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveAbsent(const std::set<Key>& present) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report(ModelEvent::Kind kind, const Key& key, absl::Status status);

  const WatcherOptions options_;
  ModelRegistry* const registry_;

  Mutex mutex_;
  std::map<Key, Record> records_ ABSL_GUARDED_BY(mutex_);
  absl::Status listing_ ABSL_GUARDED_BY(mutex_);

  Mutex thread_mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(thread_mutex_) = false;
  std::thread thread_;
};

}  // namespace attend

#include "server/batching/model_watcher.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

namespace attend {
namespace {

// 0 for "".
absl::StatusOr<int64_t> ParseVersion(absl::string_view version) {
  int64_t number = 0;
  if (version.empty()) return 0;
  if (absl::SimpleAtoi(version, &number) && number > 0) return number;
  return absl::InvalidArgumentError(absl::StrCat(
      "version: \"", version, "\" is no positive integer; leave it empty for the highest"));
}

// The versions that can be listed; what is wrong with other entries is Poll's to report.
absl::StatusOr<std::vector<ModelVersion>> Listable(const std::string& repository) {
  std::vector<absl::Status> ignored;
  return ListModelVersions(repository, &ignored);
}

}  // namespace

ModelWatcher::ModelWatcher(WatcherOptions options, ModelRegistry* registry)
    : options_(std::move(options)), registry_(registry) {
  {
    MutexLock lock(&mutex_);
    const auto versions = Listable(options_.repository);
    for (const ModelVersion& version : versions.ok() ? *versions : std::vector<ModelVersion>()) {
      if (!registry_->Find(version.name, absl::StrCat(version.version)).ok()) continue;
      records_[{version.name, version.version}].settled = FingerprintOf(version.directory);
    }
  }
  if (options_.poll.count() == 0) return;
  thread_ = std::thread([this] {
    MutexLock lock(&thread_mutex_);
    while (!stopping_) {
      stop_.wait_for(thread_mutex_, options_.poll);
      if (!stopping_) Poll();
    }
  });
}

ModelWatcher::~ModelWatcher() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&thread_mutex_);
    stopping_ = true;
    stop_.notify_one();
  }
  thread_.join();
}

void ModelWatcher::Poll() {
  MutexLock lock(&mutex_);
  std::vector<absl::Status> broken;
  const auto versions = ListModelVersions(options_.repository, &broken);
  const absl::Status listing =
      versions.ok() && !broken.empty() ? broken.front() : versions.status();
  if (listing != listing_) {
    listing_ = listing;
    if (!listing_.ok()) Report(ModelEvent::Kind::kFailed, {"", 0}, listing_);
  }
  if (!versions.ok()) return;
  std::set<Key> present;
  for (const ModelVersion& version : *versions) {
    present.insert({version.name, version.version});
    Consider(version);
  }
  RemoveAbsent(present);
}

void ModelWatcher::Consider(const ModelVersion& version) {
  Record& record = records_[{version.name, version.version}];
  record.absences = 0;
  const VersionFingerprint fingerprint = FingerprintOf(version.directory);
  if (record.settled == fingerprint) return;
  if (fingerprint.published_by_rename || record.seen == fingerprint) {
    LoadLocked(version, fingerprint).IgnoreError();
  }
  record.seen = fingerprint;
}

absl::Status ModelWatcher::LoadLocked(const ModelVersion& version,
                                      const VersionFingerprint& fingerprint) {
  const Key key{version.name, version.version};
  records_[key].settled = fingerprint;
  auto model = options_.load(version);
  if (!model.ok()) {
    Report(ModelEvent::Kind::kFailed, key, model.status());
    return model.status();
  }
  registry_->Put(*std::move(model));
  Report(ModelEvent::Kind::kLoaded, key, absl::OkStatus());
  return absl::OkStatus();
}

void ModelWatcher::RemoveAbsent(const std::set<Key>& present) {
  for (auto it = records_.begin(); it != records_.end();) {
    if (present.contains(it->first) || ++it->second.absences < 2) {
      ++it;
      continue;
    }
    if (registry_->Remove(it->first.first, it->first.second).ok()) {
      Report(ModelEvent::Kind::kRemoved, it->first, absl::OkStatus());
    }
    it = records_.erase(it);
  }
}

absl::Status ModelWatcher::Load(absl::string_view name, absl::string_view version) {
  const auto number = ParseVersion(version);
  if (!number.ok()) return number.status();
  MutexLock lock(&mutex_);
  const auto versions = Listable(options_.repository);
  if (!versions.ok()) return versions.status();
  // Sorted: the last that fits is the highest.
  const ModelVersion* found = nullptr;
  for (const ModelVersion& v : *versions) {
    if (v.name == name && (*number == 0 || v.version == *number)) found = &v;
  }
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the repository ", options_.repository, " has no model ", name,
                     *number == 0 ? std::string() : absl::StrCat(" of version ", *number)));
  }
  return LoadLocked(*found, FingerprintOf(found->directory));
}

absl::Status ModelWatcher::Unload(absl::string_view name, absl::string_view version) {
  const auto number = ParseVersion(version);
  if (!number.ok()) return number.status();
  MutexLock lock(&mutex_);
  const auto versions = Listable(options_.repository);
  int removed = 0;
  for (const auto& model : registry_->List()) {
    if (model->name != name || (*number != 0 && model->version != *number)) continue;
    if (!registry_->Remove(name, model->version).ok()) continue;
    ++removed;
    const Key key{model->name, model->version};
    for (const ModelVersion& v : versions.ok() ? *versions : std::vector<ModelVersion>()) {
      if (Key{v.name, v.version} == key) records_[key].settled = FingerprintOf(v.directory);
    }
    Report(ModelEvent::Kind::kRemoved, key, absl::OkStatus());
  }
  if (removed > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "model ", name, *number == 0 ? std::string() : absl::StrCat("@", *number), " is not served"));
}

void ModelWatcher::Report(ModelEvent::Kind kind, const Key& key, absl::Status status) {
  if (options_.on_event) options_.on_event({kind, key.first, key.second, std::move(status)});
}

}  // namespace attend

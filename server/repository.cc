#include "server/repository.h"

#include <utility>

#include "server/models.h"
#include "server/observe/log.h"

namespace attend {
namespace {

void Report(const ModelEvent& event, Metrics* metrics) {
  const bool failed = event.kind == ModelEvent::Kind::kFailed;
  const char* const what = failed                                    ? "model failed"
                           : event.kind == ModelEvent::Kind::kLoaded ? "model loaded"
                                                                     : "model removed";
  Log(failed ? LogLevel::kError : LogLevel::kInfo, what,
      {{"model", event.name},
       {"version", event.version},
       {"reason", std::string(event.status.message())}});
  metrics->OnModelChange(what + sizeof("model"));
}

WatcherOptions OptionsOf(const std::string& directory, std::chrono::milliseconds poll,
                         Metrics* metrics) {
  WatcherOptions options;
  options.repository = directory;
  options.poll = poll;
  options.load = LoadServedModel;
  options.on_event = [metrics](const ModelEvent& event) { Report(event, metrics); };
  return options;
}

}  // namespace

Repository::Repository(const std::string& directory, std::chrono::milliseconds poll,
                       ModelRegistry* registry, Metrics* metrics)
    : watcher_(OptionsOf(directory, poll, metrics), registry) {}

absl::Status Repository::Load(const std::string& model) { return watcher_.Load(model, ""); }

absl::Status Repository::Unload(const std::string& model) { return watcher_.Unload(model, ""); }

}  // namespace attend

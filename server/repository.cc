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
  options.load = [metrics](const ModelVersion& version) {
    return LoadServedModel(version, metrics);
  };
  options.on_event = [metrics](const ModelEvent& event) { Report(event, metrics); };
  return options;
}

}  // namespace

Repository::Repository(const std::string& directory, std::chrono::milliseconds poll,
                       ModelRegistry* registry, Metrics* metrics)
    : watcher_(OptionsOf(directory, poll, metrics), registry), worker_([this] { RunTasks(); }) {}

Repository::~Repository() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  worker_.join();
  MutexLock lock(&mutex_);
  for (const Task& task : tasks_) task.done(absl::UnavailableError("the server is stopping"));
}

void Repository::Load(const std::string& model, Done done) {
  Add({[this, model] { return watcher_.Load(model, ""); }, std::move(done)});
}

void Repository::Unload(const std::string& model, Done done) {
  Add({[this, model] { return watcher_.Unload(model, ""); }, std::move(done)});
}

void Repository::Add(Task task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Repository::RunTasks() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (!ending_ && tasks_.empty()) changed_.wait(mutex_);
      if (ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task.done(task.work());
  }
}

}  // namespace attend

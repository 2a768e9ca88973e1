#include "server/observe/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>

namespace attend {
namespace {

prometheus::Gauge& MakeGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

int64_t CountOpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  int64_t count = 0;
  while (directory && readdir(directory.get()) != nullptr) ++count;
  return count - 3;  // ".", ".." and the directory itself
}

}  // namespace

ProcessMetrics::ProcessMetrics(prometheus::Registry& registry)
    : resident_bytes_(MakeGauge(registry, "process_resident_memory_bytes",
                                "Memory of the process that is in RAM")),
      open_fds_(MakeGauge(registry, "process_open_fds", "Open file descriptors")),
      max_fds_(MakeGauge(registry, "process_max_fds", "File descriptors that may be open")),
      threads_(MakeGauge(registry, "process_threads", "Threads of the process")),
      start_seconds_(MakeGauge(registry, "process_start_time_seconds",
                               "Start of the process, seconds since the epoch")),
      cpu_seconds_(prometheus::BuildCounter()
                       .Name("process_cpu_seconds_total")
                       .Help("CPU time that the process took")
                       .Register(registry)
                       .Add({})) {
  start_seconds_.Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
}

void ProcessMetrics::Sample() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key; status.ignore(4096, '\n')) {
    double value = 0;
    if (key == "VmRSS:" && status >> value) resident_bytes_.Set(value * 1024);
    if (key == "Threads:" && status >> value) threads_.Set(value);
  }
  open_fds_.Set(static_cast<double>(CountOpenFiles()));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) max_fds_.Set(static_cast<double>(limit.rlim_cur));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    cpu_seconds_.Increment(seconds(usage.ru_utime) + seconds(usage.ru_stime) -
                           cpu_seconds_.Value());
  }
}

}  // namespace attend

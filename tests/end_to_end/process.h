// Child processes for tests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace attend::testing {

using Arguments = std::vector<std::string>;              // argv, argv[0] is the program's path
using Environment = std::map<std::string, std::string>;  // added to the test's own

// A running program whose output is collected. It dies with the thread that started it, so no test
// leaves one behind. Thread-safe but for the destructor, which kills what still runs.
class Process {
 public:
  explicit Process(const Arguments& arguments, const Environment& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Waits for the end: the exit code, or 128 + the signal that ended it.
  int Wait();
  // Nothing when it still runs after `timeout`.
  std::optional<int> WaitFor(std::chrono::milliseconds timeout);
  // The first line of standard output or error, of those written so far or to come, that contains
  // `text`; empty when the process closes its output without one.
  std::string WaitForLine(const std::string& text);
  // What it wrote so far.
  std::string out() const;
  std::string err() const;

 private:
  void Collect(int out, int err);

  pid_t pid_ = -1;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string out_ ABSL_GUARDED_BY(mutex_);
  std::string err_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<int> exit_code_ ABSL_GUARDED_BY(mutex_);
  std::thread collector_;
};

struct Finished {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs to the end.
Finished Run(const Arguments& arguments, const Environment& environment = {});

// The value of `key` in a text log line of key=value fields; empty when it is not there.
std::string FieldOf(const std::string& line, const std::string& key);

// attend-server on free ports, ready to answer.
struct ServerProcess {
  // `flags` come after --grpc-address=localhost:0 --metrics-address=localhost:0 and win over them.
  explicit ServerProcess(const Arguments& flags = {}, const Environment& environment = {});

  Process process;
  std::string grpc_address;  // empty when the server ended without listening
  std::string metrics_address;
};

}  // namespace attend::testing

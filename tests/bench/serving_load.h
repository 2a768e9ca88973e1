// The processes of a serving benchmark: servers and load generators, each on CPUs of its own.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

#include "tests/end_to_end/process.h"

namespace attend::bench {

// While it lives, processes and threads that the calling thread starts stay on one CPU of the
// machine's, counted from 0; below 0 anywhere.
class OnCpu {
 public:
  explicit OnCpu(int cpu);
  ~OnCpu();

 private:
  cpu_set_t before_;
};

// A repository of one model "layer": d_f features, `heads` heads, an output projection.
class ModelFolder {
 public:
  ModelFolder(int64_t d_f, int64_t heads);
  ~ModelFolder();
  std::string flag() const { return "--model-repository=" + root_; }

 private:
  std::string root_;
};

// `attend-bench --echo`, ready to answer.
struct EchoProcess {
  EchoProcess(int64_t d_f, bool refuse);

  testing::Process process;
  std::string grpc_address;
};

// Of one run of `attend load`.
struct LoadFigures {
  double offered_rate = 0, achieved_rate = 0, refused_rate = 0;  // calls/s
  double items_per_second = 0;
  double p50 = 0, p99 = 0;  // ms; 0 with too few answers to tell
  double compute_p99 = 0;   // ms, as the server said
  int64_t answered = 0;
};

// `attend load` of the model "layer" with further `flags`, while it runs.
class Load {
 public:
  Load(const std::string& address, const testing::Arguments& flags);
  ~Load();
  // Waits for the end. Exits the program with a message when it failed.
  LoadFigures Wait();

 private:
  std::string json_;
  testing::Process process_;
};

inline LoadFigures RunLoad(const std::string& address, const testing::Arguments& flags) {
  return Load(address, flags).Wait();
}

double CpuSecondsOf(pid_t process);
double ResidentMibOf(pid_t process);

}  // namespace attend::bench

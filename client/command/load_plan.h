// What the flags of `attend load` amount to, once the model has been asked for.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/command/flags.h"
#include "client/load/grpc_transport.h"
#include "client/load/load_run.h"
#include "client/load/workload.h"

namespace attend::client {

struct LoadFlags {
  ConnectionFlags connection;
  std::string model = "demo";
  double rate = 0;
  int concurrency = 0;
  std::string arrivals = "constant";
  std::string trace;
  std::string lengths = "8..512";
  uint64_t seed = 1;
  std::chrono::milliseconds duration{10'000}, warm_up{1'000};
  uint32_t priority = 0;
  bool causal = false;
  int channels = 1, threads = 1, max_open_calls = 20'000;
  bool sweep = false;
  std::chrono::milliseconds latency_bound{50};
  std::string json, log;

  void AddTo(CLI::App& app);
};

struct LoadPlan {
  LoadTarget target;
  LoadOptions options;
  std::vector<MixPart> mix;
  std::vector<LoadCall> trace;  // instead of a mix, where one is replayed

  // The calls of one run, open at `rate` calls a second or closed with 0.
  std::unique_ptr<CallSource> Calls(const LoadFlags& flags, double rate) const;
};

// Asks the server for the model. INVALID_ARGUMENT naming the flag, file or length that is wrong, or
// the server's status.
absl::StatusOr<LoadPlan> MakeLoadPlan(const LoadFlags& flags);

}  // namespace attend::client

// Flags that several commands share, and how flags get their environment variables.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/attend_client.h"

namespace attend::client {

// A duration such as "500ms", "30s" or "2m"; its present value is the default.
CLI::Option* AddDuration(CLI::App& app, const std::string& name, std::chrono::milliseconds* value,
                         const std::string& description);

// NAME or NAME@VERSION, taken apart.
struct ModelName {
  std::string name;
  std::string version;  // "" is the highest
};
ModelName ParseModelName(const std::string& text);

// Where the server is and how to talk to it.
struct ConnectionFlags {
  std::vector<std::string> targets = {"localhost:8001"};
  std::chrono::milliseconds deadline{30'000};
  int64_t max_message_bytes = int64_t{256} << 20;
  int attempts = RetryOptions().max_attempts;
  bool tls = false;
  TlsOptions tls_options;

  void AddTo(CLI::App& app);
  ChannelOptions ToChannelOptions() const;
  CallOptions ToCallOptions() const { return {.deadline = deadline}; }
};

// Gives every long flag --some-name of `app` the variable ATTEND_SOME_NAME. Call when all are
// added.
void NameEnvironmentVariables(CLI::App& app);

}  // namespace attend::client

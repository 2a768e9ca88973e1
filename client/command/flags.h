// Flags that several commands share, and how flags get their environment variables.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/attend_client.h"
#include "client/command/server_calls.h"
#include "client/protocol.h"

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
  Protocol protocol = Protocol::kAttend;
  std::chrono::milliseconds deadline{30'000};
  int64_t max_message_bytes = int64_t{256} << 20;
  int attempts = RetryOptions().max_attempts;
  bool tls = false;
  TlsOptions tls_options;

  void AddTo(CLI::App& app);
  ChannelOptions ToChannelOptions() const;
  CallOptions ToCallOptions() const { return {.deadline = deadline}; }
  // By the chosen protocol. Errors as of MakeChannel.
  absl::StatusOr<std::unique_ptr<ServerCalls>> Connect() const {
    return MakeServerCalls(protocol, ToChannelOptions());
  }
};

// Gives every long flag --some-name of `app` the variable ATTEND_SOME_NAME, or one of its own where
// that means something else elsewhere (docs/client.md). Call when all are added.
void NameEnvironmentVariables(CLI::App& app);

}  // namespace attend::client

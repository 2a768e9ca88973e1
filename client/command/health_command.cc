// attend health: for probes of containers and scripts.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/flags.h"

namespace attend::client {
namespace {

using std::chrono::milliseconds;

struct HealthFlags {
  ConnectionFlags connection;
  std::string service;
  milliseconds wait{0};
};

// Asks until the server serves or `wait` is over; asks once at least.
absl::Status WaitUntilServing(ServerCalls& client, const HealthFlags& flags) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + flags.wait;
  while (true) {
    // A call that waits drives the connection; between calls that fail at once nobody would.
    absl::Status status = client.Health(
        flags.service, {.deadline = std::min(flags.connection.deadline, milliseconds(1000)),
                        .wait_for_ready = flags.wait.count() > 0});
    const bool may_change = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!may_change || Clock::now() >= end) return status;
    std::this_thread::sleep_for(milliseconds(20));
  }
}

int Run(const HealthFlags& flags) {
  ChannelOptions options = flags.connection.ToChannelOptions();
  options.leave_out_unhealthy = false;
  const auto client = MakeServerCalls(flags.connection.protocol, options);
  if (!client.ok()) return Report(client.status());
  const absl::Status status = WaitUntilServing(**client, flags);
  if (status.ok()) std::puts("SERVING");
  return Report(status);
}

}  // namespace

void AddHealth(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<HealthFlags>();
  CLI::App* command = app.add_subcommand("health", "Whether the server serves (for probes)");
  command->add_option("--service", flags->service, "one gRPC service instead of the whole server")
      ->type_name("NAME");
  AddDuration(*command, "--wait", &flags->wait, "ask again until it serves, as long as this");
  flags->connection.AddTo(*command);
  NameEnvironmentVariables(*command);
  command->footer(
      "Prints SERVING, or on stderr why not; exits 0 or 3.\n"
      "Examples:\n"
      "  attend health --target localhost:8001\n"
      "  attend health --wait 30s --service attend.v1.Attention");
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace attend::client

// attend: the command line of an Attend server.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "client/command/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Talks to an Attend server: self-attention over gRPC.", "attend");
  app.set_version_flag("--version", "attend " ATTEND_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "Every --some-flag can also be given as the variable that its --help names.\n"
      "Exit codes: 0 done; 2 the request is wrong; 3 unavailable or too late; 4 the server "
      "failed.\n"
      "Examples:\n"
      "  attend explain The cat sat down because it was tired\n"
      "  attend infer --model demo --items items.npy --out answer\n"
      "  attend load --rate 500 --duration 10s --lengths 8..512\n"
      "  attend health --wait 30s");
  int exit_code = 0;
  attend::client::AddModels(app, &exit_code);
  attend::client::AddInfer(app, &exit_code);
  attend::client::AddExplain(app, &exit_code);
  attend::client::AddLoad(app, &exit_code);
  attend::client::AddHealth(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

// The subcommands of `attend`. Each Add... gives `app` one subcommand that, when chosen, runs while
// the command line is parsed and leaves its exit code in `exit_code`, which outlives `app`.
#pragma once

#include <CLI/CLI.hpp>

namespace attend::client {

void AddModels(CLI::App& app, int* exit_code);
// `attend models check`, under `models`.
void AddModelsCheck(CLI::App& models, int* exit_code);
void AddInfer(CLI::App& app, int* exit_code);
void AddExplain(CLI::App& app, int* exit_code);
void AddLoad(CLI::App& app, int* exit_code);
void AddHealth(CLI::App& app, int* exit_code);

}  // namespace attend::client

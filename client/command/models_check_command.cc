// attend models check: what a folder with a checkpoint holds and how to serve a layer of it.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <memory>
#include <string>

#include "client/command/commands.h"

namespace attend::client {
namespace {

struct CheckFlags {
  std::string directory;
  std::string tensor_prefix;
};

// Beside this program, where both are installed; else wherever PATH finds it.
std::string ServerProgram() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length > 0) {
    const std::string path(self, static_cast<size_t>(length));
    const std::string beside = path.substr(0, path.rfind('/') + 1) + "attend-server";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "attend-server";
}

// The server knows the formats and does the checking; this process becomes it.
int Run(const CheckFlags& flags) {
  const std::string program = ServerProgram();
  execlp(program.c_str(), program.c_str(), "--check-model", flags.directory.c_str(),
         "--tensor-prefix", flags.tensor_prefix.c_str(), static_cast<char*>(nullptr));
  std::fprintf(stderr, "attend models check needs attend-server beside attend or in PATH\n");
  return 2;
}

}  // namespace

void AddModelsCheck(CLI::App& models, int* exit_code) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = models.add_subcommand(
      "check", "What a folder with a checkpoint holds and how to serve a layer of it");
  command->add_option("directory", flags->directory, "with model.safetensors, or its index")
      ->type_name("DIR")
      ->required();
  command->add_option("--tensor-prefix", flags->tensor_prefix, "the layer asked for")
      ->type_name("PREFIX");
  command->footer(
      "Needs no running server. Exits 0 with a ready attend.json, or 2 and says what is wrong.\n"
      "Examples:\n"
      "  attend models check checkpoints/bert\n"
      "  attend models check checkpoints/bert --tensor-prefix encoder.layer.3.attention.");
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace attend::client

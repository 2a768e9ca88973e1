// Runs a program to its end and says what it printed.
#pragma once

#include <string>
#include <vector>

namespace attend::client {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

// `arguments[0]` is the program's path; `environment` is added to this process's.
CommandResult RunCommand(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {});

}  // namespace attend::client

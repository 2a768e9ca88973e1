// What the command tells the shell.
#pragma once

#include <absl/status/status.h>

namespace attend::client {

// 0 done; 2 the caller's error (request, model, file or flag wrong); 3 unavailable, full or too
// late, so worth another try; 4 the server's error.
int ExitCode(const absl::Status& status);

// Prints the status on stderr, one line, if it is an error, and returns its exit code.
int Report(const absl::Status& status);

}  // namespace attend::client

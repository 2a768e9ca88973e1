#include "client/command/exit_code.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "client/errors.h"

namespace attend::client {

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
      return 3;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return 4;
    default:
      return 2;
  }
}

int Report(const absl::Status& status) {
  if (!status.ok()) {
    std::string line(status.message());
    if (line.empty()) line = absl::StatusCodeToString(status.code());
    std::replace(line.begin(), line.end(), '\n', ' ');
    if (const auto wait = RetryAfter(status)) {
      absl::StrAppend(&line, " (try again in ", wait->count(), " ms)");
    }
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  return ExitCode(status);
}

}  // namespace attend::client

// The server's log: events with fields, one line each, as text or JSON, to standard error.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>

namespace attend {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  std::string level = "info";   // "debug", "info", "warning", "error"
  std::string format = "text";  // "text", "json"
};

struct LogField {
  absl::string_view key;
  std::variant<int64_t, double, std::string> value;
};

// INVALID_ARGUMENT naming the choice. Before it, the log is text from info on. Not thread-safe.
absl::Status ConfigureLog(const LogOptions& options);

// Whether the level is written at all; asked before fields are made on a hot path.
bool LogEnabled(LogLevel level);
// text: TIME LEVEL event key=value ...      json: {"time":...,"level":...,"event":...,"key":value}
// A text value with a space, a quote or a control character is quoted like JSON's. Thread-safe.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);

}  // namespace attend

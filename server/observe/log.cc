#include "server/observe/log.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace attend {
namespace {

bool json = false;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

const std::shared_ptr<spdlog::logger>& Logger() {
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>("attend",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return logger;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

bool Plain(absl::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '\x7f';
  });
}

std::string ValueText(const LogField& field) {
  if (const auto* integer = std::get_if<int64_t>(&field.value)) return absl::StrCat(*integer);
  if (const auto* number = std::get_if<double>(&field.value)) {
    return json && !std::isfinite(*number) ? "null" : absl::StrCat(*number);
  }
  const auto& text = std::get<std::string>(field.value);
  return json || !Plain(text) ? Quoted(text) : text;
}

}  // namespace

absl::Status ConfigureLog(const LogOptions& options) {
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("log-format: \"", options.format, "\"; use \"text\" or \"json\""));
  }
  const auto level = spdlog::level::from_str(options.level);
  if (level == spdlog::level::off || level == spdlog::level::trace) {
    return absl::InvalidArgumentError(absl::StrCat(
        "log-level: \"", options.level, "\"; use \"debug\", \"info\", \"warning\" or \"error\""));
  }
  json = options.format == "json";
  Logger()->set_level(level);
  Logger()->set_pattern(
      json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})" : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
      spdlog::pattern_time_type::utc);
  return absl::OkStatus();
}

bool LogEnabled(LogLevel level) { return Logger()->should_log(ToSpdlog(level)); }

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  if (!LogEnabled(level)) return;
  std::string line = json ? absl::StrCat("\"event\":", Quoted(event)) : std::string(event);
  for (const LogField& field : fields) {
    json ? absl::StrAppend(&line, ",", Quoted(field.key), ":", ValueText(field))
         : absl::StrAppend(&line, " ", field.key, "=", ValueText(field));
  }
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace attend

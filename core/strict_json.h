// JSON for the loaders: what is doubtful in a file is refused, with the place.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <string>

namespace attend {

// Keys keep the order of the file.
using Json = nlohmann::ordered_json;

// INVALID_ARGUMENT with line and column for a syntax error; also for a key that comes twice in one
// object, and for arrays and objects nested deeper than 64.
absl::StatusOr<Json> ParseStrictJson(absl::string_view text);

// Why the parser refused a text, for a message.
std::string ReasonOf(const nlohmann::json::exception& error);

// The value for a message, cut to a few words.
std::string Excerpt(const Json& value);

}  // namespace attend

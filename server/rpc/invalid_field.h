// The refusal of one field of a request.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <optional>
#include <string>

namespace attend {

// INVALID_ARGUMENT "field: why"; the field also travels by itself, for google.rpc.BadRequest.
template <typename... Parts>
absl::Status InvalidField(absl::string_view field, const Parts&... why);

// What InvalidField was given; nothing for any other status.
std::optional<std::string> FieldOf(const absl::Status& status);

absl::Status MakeInvalidField(absl::string_view field, absl::string_view why);

template <typename... Parts>
absl::Status InvalidField(absl::string_view field, const Parts&... why) {
  return MakeInvalidField(field, absl::StrCat(why...));
}

}  // namespace attend

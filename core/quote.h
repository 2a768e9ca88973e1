// Names from files and callers in messages: quoted, with control characters escaped, lists cut
// short.
#pragma once

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace attend {

// The first 200 bytes of a longer name.
inline std::string Quoted(absl::string_view name) {
  std::size_t end = std::min<std::size_t>(name.size(), 200);
  const bool is_cut = end < name.size();
  // Not in the middle of a character.
  while (is_cut && end > 0 && (name[end] & 0xC0) == 0x80) --end;
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(name.substr(0, end)), is_cut ? "...\"" : "\"");
}

// "a", "b", "c" and 17 more
template <typename Names>
std::string QuotedList(const Names& names, std::size_t limit = 12) {
  std::string text;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (count++ < limit) absl::StrAppend(&text, count > 1 ? ", " : "", Quoted(name));
  }
  if (count > limit) absl::StrAppend(&text, " and ", count - limit, " more");
  return text;
}

}  // namespace attend

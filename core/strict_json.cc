#include "core/strict_json.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <functional>
#include <set>
#include <vector>

#include "core/quote.h"

namespace attend {
namespace {

constexpr int kMaxDepth = 64;

// Watches the parser for what JSON leaves open: keys that come twice and unbounded nesting.
class Watcher {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (!problem_.empty()) return false;
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxDepth) {
      problem_ = absl::StrCat("is nested deeper than ", kMaxDepth);
    }
    if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      problem_ = absl::StrCat("the key ", Quoted(parsed.get<std::string>()), " comes twice");
    }
    return problem_.empty();
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

absl::StatusOr<Json> ParseStrictJson(absl::string_view text) {
  // The parser takes NUL for the end of the text.
  if (const auto nul = text.find('\0'); nul != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("is no JSON: byte ", nul, " is NUL"));
  }
  Watcher watcher;
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), std::ref(watcher));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("is no JSON: ", ReasonOf(error)));
  }
  if (!watcher.problem().empty()) return absl::InvalidArgumentError(watcher.problem());
  return json;
}

std::string ReasonOf(const nlohmann::json::exception& error) {
  constexpr std::size_t kLimit = 200;  // the parser quotes what it read last, however long
  absl::string_view reason = error.what();
  const auto id_end = reason.find("] ");
  if (id_end != absl::string_view::npos) reason.remove_prefix(id_end + 2);
  std::string text;
  for (const char c : reason.substr(0, kLimit)) {
    // It may stop in the middle of a character.
    absl::StrAppend(&text, absl::ascii_isprint(static_cast<unsigned char>(c))
                               ? std::string(1, c)
                               : absl::CHexEscape(absl::string_view(&c, 1)));
  }
  return reason.size() > kLimit ? text + "..." : text;
}

std::string Excerpt(const Json& value) {
  constexpr std::size_t kLimit = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kLimit) text = absl::StrCat(text.substr(0, kLimit), "...");
  return text;
}

}  // namespace attend

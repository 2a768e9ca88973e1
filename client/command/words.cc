#include "client/command/words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace attend::client {
namespace {

// Levenshtein's distance: insertions, deletions and substitutions from a to b.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

// Up to five known names, the closest first.
std::vector<std::string> CloseNames(const v1::ModelInfo& model, const std::string& word) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const v1::NamedItem& item : model.item_names()) {
    ranked.emplace_back(EditDistance(word, absl::AsciiStrToLower(item.name())), item.name());
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(ranked.size(), 5); ++i) names.push_back(ranked[i].second);
  return names;
}

}  // namespace

std::vector<std::string> SplitWords(const std::vector<std::string>& texts) {
  constexpr char kPunctuation[] = ".,;:!?\"()[]";
  std::vector<std::string> words;
  const std::string text = absl::StrJoin(texts, " ");
  const std::vector<std::string> parts = absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"));
  for (const std::string& word : parts) {
    const size_t first = word.find_first_not_of(kPunctuation);
    if (first == std::string::npos) continue;
    words.push_back(word.substr(first, word.find_last_not_of(kPunctuation) + 1 - first));
  }
  return words;
}

absl::StatusOr<std::vector<float>> WordFeatures(const v1::ModelInfo& model,
                                                const std::vector<std::string>& words) {
  if (model.item_names().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.name(), "' names no items, so words mean nothing to it: ",
                     "give --items FILE.npy of shape [N, ", model.d_f(), "]"));
  }
  std::map<std::string, const v1::NamedItem*> known;
  for (const v1::NamedItem& item : model.item_names()) {
    known.emplace(absl::AsciiStrToLower(item.name()), &item);
  }
  const auto& names = model.feature_names();
  const auto index_of = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const int64_t position = index_of("position"), squared = index_of("position_squared");
  std::vector<float> features;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = absl::AsciiStrToLower(words[i]);
    const auto found = known.find(word);
    if (found == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model '", model.name(), "' does not know the word '", words[i],
          "'; it knows, among others: ", absl::StrJoin(CloseNames(model, word), ", ")));
    }
    const auto& known_features = found->second->features();
    std::vector<float> row(known_features.begin(), known_features.end());
    if (position < std::ssize(row)) row[position] = static_cast<float>(i);
    if (squared < std::ssize(row)) row[squared] = static_cast<float>(i * i);
    features.insert(features.end(), row.begin(), row.end());
  }
  return features;
}

}  // namespace attend::client

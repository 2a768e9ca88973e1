#include "client/command/attention_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "client/command/text_table.h"

namespace attend::client {
namespace {

constexpr char kBold[] = "\x1b[1m";
constexpr char kReset[] = "\x1b[0m";

std::string WeightText(float weight) {
  return std::fabs(weight) < 0.005f ? "." : absl::StrFormat("%.2f", weight);
}

// Dark blue to bright: background shades of the 256-colour cube, with ink that can be read on it.
std::string Shade(float weight) {
  constexpr int kShades[] = {17, 18, 19, 26, 33, 39, 45};
  if (std::fabs(weight) < 0.005f) return "\x1b[2m";
  const int step = static_cast<int>(std::clamp(std::fabs(weight), 0.f, 1.f) * 6.99f);
  return absl::StrFormat("\x1b[48;5;%dm\x1b[38;5;%dm", kShades[step], step < 4 ? 255 : 16);
}

size_t Widest(const std::vector<std::string>& texts) {
  size_t widest = 0;
  for (const std::string& text : texts) widest = std::max(widest, DisplayWidth(text));
  return widest;
}

}  // namespace

std::vector<StrongestAnswer> StrongestAnswers(const HeadWeights& head) {
  std::vector<StrongestAnswer> answers;
  for (int64_t i = 0; i < head.n; ++i) {
    StrongestAnswer answer{.i = i};
    for (int64_t j = 0; j < head.n; ++j) {
      const float weight = head.at(i, j);
      if (weight != 0 && (answer.j < 0 || weight > answer.weight)) {
        answer.j = j;
        answer.weight = weight;
      }
    }
    answers.push_back(answer);
  }
  return answers;
}

std::vector<std::string> UniqueLabels(const std::vector<std::string>& names) {
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[name];
  std::vector<std::string> labels;
  for (size_t i = 0; i < names.size(); ++i) {
    labels.push_back(count[names[i]] > 1 ? absl::StrCat(names[i], "[", i, "]") : names[i]);
  }
  return labels;
}

std::string WeightsTable(const HeadWeights& head, const std::vector<std::string>& names,
                         bool colour) {
  const size_t first = Widest(names);
  std::string text(first, ' ');
  std::vector<size_t> widths;
  for (int64_t j = 0; j < head.n; ++j) {
    size_t width = std::max<size_t>(DisplayWidth(names[j]), 5);
    for (int64_t i = 0; i < head.n; ++i) {
      width = std::max(width, WeightText(head.at(i, j)).size());
    }
    widths.push_back(width);
    absl::StrAppend(&text, "  ", PadLeft(names[j], width));
  }
  text += "\n";
  for (int64_t i = 0; i < head.n; ++i) {
    text += PadRight(names[i], first);
    for (int64_t j = 0; j < head.n; ++j) {
      const float weight = head.at(i, j);
      const std::string cell = "  " + PadLeft(WeightText(weight), widths[j]);
      absl::StrAppend(&text, colour ? Shade(weight) : "", cell, colour ? kReset : "");
    }
    text += "\n";
  }
  return text;
}

std::string StrongestText(const HeadWeights& head, const std::vector<std::string>& names,
                          bool colour) {
  const std::vector<std::string> labels = UniqueLabels(names);
  std::string text;
  for (const StrongestAnswer& answer : StrongestAnswers(head)) {
    absl::StrAppend(&text, "  ", labels[answer.i], " -> ");
    if (answer.j < 0) {
      text += "nobody\n";
    } else {
      absl::StrAppend(&text, colour ? kBold : "", labels[answer.j], colour ? kReset : "",
                      absl::StrFormat(" %.2f\n", answer.weight));
    }
  }
  return text;
}

}  // namespace attend::client

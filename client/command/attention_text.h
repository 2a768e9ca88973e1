// Who attends to whom, as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attend::client {

// One head's weights [N, N]: row i asks, column j answers. Does not own.
struct HeadWeights {
  std::span<const float> weights;
  int64_t n = 0;

  float at(int64_t i, int64_t j) const { return weights[i * n + j]; }
};

// Item i's strongest answer; j is -1 where every weight is 0.
struct StrongestAnswer {
  int64_t i = 0;
  int64_t j = -1;
  float weight = 0;
};
std::vector<StrongestAnswer> StrongestAnswers(const HeadWeights& head);

// Names that occur more than once get their index: "the", "cat", "the" -> "the[0]", "cat",
// "the[2]".
std::vector<std::string> UniqueLabels(const std::vector<std::string>& names);

// The table, one row for each item that asks; weights below 0.005 as ".". With colour, the more
// weight the brighter, by ANSI sequences of 256 colours.
std::string WeightsTable(const HeadWeights& head, const std::vector<std::string>& names,
                         bool colour);
// "it -> cat 0.87": `it` asks, `cat` answers; one line for each item.
std::string StrongestText(const HeadWeights& head, const std::vector<std::string>& names,
                          bool colour);

}  // namespace attend::client

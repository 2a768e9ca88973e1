#include "client/command/attention_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attend::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AttentionText, AnItemThatNobodyAnswersSaysSo) {
  const std::vector<float> weights = {0, 0, 0.5f, 0.5f};
  EXPECT_EQ(StrongestText({weights, 2}, {"a", "b"}, false), "  a -> nobody\n  b -> a 0.50\n");
}

TEST(AttentionText, NegativeWeightsHaveAStrongestToo) {
  const std::vector<float> weights = {-3, -1, 0, 2};
  const auto answers = StrongestAnswers({weights, 2});
  EXPECT_EQ(answers[0].j, 1);
  EXPECT_EQ(answers[1].j, 1);
}

TEST(AttentionText, RepeatedNamesGetTheirIndex) {
  EXPECT_THAT(UniqueLabels({"the", "cat", "the"}), ElementsAre("the[0]", "cat", "the[2]"));
}

TEST(AttentionText, ColumnsAreAsWideAsNamesOrNumbersWhateverTheScript) {
  const std::vector<float> weights = {12.5f, 0, -1, 1};
  EXPECT_EQ(WeightsTable({weights, 2}, {"übel", "b"}, false),
            "       übel      b\n"
            "übel  12.50      .\n"
            "b     -1.00   1.00\n");
}

TEST(AttentionText, ColourShadesMoreWeightBrighterAndEndsEachCell) {
  const std::vector<float> weights = {1, 0.1f, 0, 0};
  const std::string table = WeightsTable({weights, 2}, {"a", "b"}, true);
  EXPECT_THAT(table, HasSubstr("\x1b[48;5;45m\x1b[38;5;16m   1.00\x1b[0m"));
  EXPECT_THAT(table, HasSubstr("\x1b[48;5;17m\x1b[38;5;255m   0.10\x1b[0m"));
}

}  // namespace
}  // namespace attend::client

// The demo model, held against docs/demo-model.md: its points recomputed in float64 from the page's
// rules, and who attends to whom in sentences of the kind a visitor types.
#include "core/demo_model.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/core/reference.h"
#include "tests/core/run_job.h"
#include "tests/core/tolerance.h"

namespace attend {
namespace {

constexpr char kSentence[] = "The cat sat down because it was tired";

using Rows = std::vector<std::vector<double>>;

// The items of a sentence as `attend explain` builds them.
Rows ItemsOf(const AttentionConfig& config, const std::string& sentence) {
  std::map<std::string, std::vector<float>> known(config.item_names.begin(),
                                                  config.item_names.end());
  Rows items;
  for (absl::string_view word : absl::StrSplit(sentence, ' ')) {
    const auto found = known.find(absl::AsciiStrToLower(word));
    EXPECT_NE(found, known.end()) << word;
    if (found == known.end()) return {};
    const double position = static_cast<double>(items.size());
    items.emplace_back(found->second.begin(), found->second.end());
    for (size_t f = 0; f < config.feature_names.size(); ++f) {
      if (config.feature_names[f] == "position") items.back()[f] = position;
      if (config.feature_names[f] == "position_squared") items.back()[f] = position * position;
    }
  }
  return items;
}

std::vector<double> Project(const FloatBuffer& weight, const FloatBuffer& bias,
                            const std::vector<double>& x) {
  std::vector<double> y(static_cast<size_t>(weight.size()) / x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = bias.empty() ? 0 : bias.data()[i];
    for (size_t j = 0; j < x.size(); ++j) y[i] += weight.data()[i * x.size() + j] * x[j];
  }
  return y;
}

double Score(const ParsedModel& demo, const Rows& items, size_t i, size_t j) {
  const auto q = Project(demo.weights.query_weight, demo.weights.query_bias, items[i]);
  const auto k = Project(demo.weights.key_weight, demo.weights.key_bias, items[j]);
  double score = 0;
  for (size_t t = 0; t < q.size(); ++t) score += q[t] * k[t];
  return score * demo.config.scale;
}

std::vector<double> Weights(const ParsedModel& demo, const Rows& items, size_t i) {
  std::vector<double> weights;
  double top = -1e300, sum = 0;
  for (size_t j = 0; j < items.size(); ++j) {
    weights.push_back(Score(demo, items, i, j));
    top = std::max(top, weights.back());
  }
  for (double& w : weights) sum += w = std::exp(w - top);
  for (double& w : weights) w /= sum;
  return weights;
}

TEST(DemoModel, CatAnswersIt) {
  const ParsedModel demo = DemoParameters();
  const std::vector<double> it = Weights(demo, ItemsOf(demo.config, kSentence), 5);
  EXPECT_GT(it[1], 0.99);
}

TEST(DemoModel, PointsOfItAreThoseOfThePage) {
  const ParsedModel demo = DemoParameters();
  const Rows items = ItemsOf(demo.config, kSentence);
  // Of docs/demo-model.md: 256 for a noun, 32 for each agreement, then a quarter for the square of
  // the distance from the fourth word before, all less what every answer has in common.
  const double kind[] = {0, 256, 0, 0, 0, 0, 0, 0};
  const double agreement[] = {0, 32 + 32, 32, 0, 0, 32 + 32, 32, 32};
  for (size_t j = 0; j < items.size(); ++j) {
    const double off = static_cast<double>(j) - (5 - 4);
    const double common = 0.25 * (5 - 4) * (5 - 4);
    EXPECT_EQ(Score(demo, items, 5, j), kind[j] + agreement[j] - 0.25 * off * off + common) << j;
  }
}

// The place of "word", or of its n-th occurrence "word:n", in the sentence.
size_t PlaceOf(const std::string& sentence, const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, ':');
  int remaining = parts.size() > 1 ? std::stoi(parts[1]) : 1;
  size_t place = 0;
  for (absl::string_view word : absl::StrSplit(sentence, ' ')) {
    if (word == parts[0] && --remaining == 0) return place;
    ++place;
  }
  ADD_FAILURE() << name << " is not in: " << sentence;
  return 0;
}

TEST(DemoModel, WordsAttendToWhatTheyAskFor) {
  const ParsedModel demo = DemoParameters();
  constexpr char kDog[] = "the cat chased the dog because it was big";
  constexpr char kAnimal[] = "the animal didn't cross the street because it was too tired";
  constexpr char kFish[] = "the dog gave the cat the fish";
  constexpr char kMat[] = "the small cat sat on the soft mat";
  constexpr char kTwo[] = "the cat was tired and the dog was hungry";
  constexpr char kLong[] =
      "the old man sat in the garden behind the house and read a book when the boys played because "
      "he was tired";
  const struct {
    const char *sentence, *asks, *answers;
  } cases[] = {
      {kSentence, "The", "cat"},
      {kSentence, "cat", "sat"},
      {kSentence, "sat", "cat"},
      {kSentence, "down", "sat"},
      {kSentence, "because", "was"},
      {kSentence, "it", "cat"},
      {kSentence, "was", "it"},
      {kSentence, "tired", "it"},
      {kDog, "the:2", "dog"},
      {kDog, "dog", "chased"},
      {kAnimal, "it", "animal"},
      {kAnimal, "didn't", "cross"},
      {kAnimal, "the:2", "street"},
      {"The queen met the king when he was young", "he", "king"},
      {"The queen met the king when she was young", "she", "queen"},
      {"the dogs saw the cat and they barked", "they", "dogs"},
      {kFish, "the:2", "cat"},
      {kFish, "the:3", "fish"},
      {kMat, "small", "cat"},
      {kMat, "on", "mat"},
      {kMat, "soft", "mat"},
      {kTwo, "tired", "cat"},
      {kTwo, "hungry", "dog"},
      {kTwo, "was:2", "dog"},
      {"the cat on the mat slept", "slept", "cat"},
      {kLong, "he", "man"},
      {kLong, "played", "boys"},
  };
  for (const auto& c : cases) {
    const size_t answers = PlaceOf(c.sentence, c.answers);
    const std::vector<double> weights =
        Weights(demo, ItemsOf(demo.config, c.sentence), PlaceOf(c.sentence, c.asks));
    EXPECT_GT(weights[answers], 0.6) << c.asks << " -> " << c.answers << ": " << c.sentence;
  }
}

TEST(DemoModel, ValuesSayWhatWasPassedOn) {
  const ParsedModel demo = DemoParameters();
  const Rows items = ItemsOf(demo.config, kSentence);
  const std::vector<double> passed_on =
      Project(demo.weights.value_weight, demo.weights.value_bias, items[1]);
  ASSERT_EQ(static_cast<int64_t>(passed_on.size()), demo.config.d_v);
  for (size_t f = 0; f < passed_on.size(); ++f) EXPECT_EQ(passed_on[f], items[1][f]) << f;
}

TEST(DemoModel, TheModelAnswersAsThePageSays) {
  const absl::StatusOr<LoadedModel> demo = MakeDemoModel();
  ASSERT_TRUE(demo.ok()) << demo.status();
  const ParsedModel parameters = DemoParameters();
  EXPECT_EQ(demo->model->info().feature_names, parameters.config.feature_names);
  EXPECT_EQ(demo->model->info().item_names, parameters.config.item_names);
  std::vector<float> items;
  for (const auto& row : ItemsOf(parameters.config, kSentence)) {
    items.insert(items.end(), row.begin(), row.end());
  }
  SequenceInput input;
  input.items = MatrixView<const float>(items.data(), 8, parameters.config.d_f);
  input.want_scores = input.want_weights = true;
  const Answers answers = RunBatch(*demo->model, {input});
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  const Reference truth = ComputeReference(parameters.config, parameters.weights, input);
  const Bounds bounds = ComputeBounds(parameters.config, parameters.weights, input, truth);
  EXPECT_LE(WorstRatio(answers[0]->scores.span(), truth.scores, bounds.scores), 1);
  EXPECT_LE(WorstRatio(answers[0]->weights.span(), truth.weights, bounds.weights), 1);
  EXPECT_LE(WorstRatio(answers[0]->values.span(), truth.values, bounds.values), 1);
  EXPECT_GT(answers[0]->weights.data()[5 * 8 + 1], 0.99f);
  // A living noun, singular, the word at position 1.
  const float* passed_on_to_it = answers[0]->values.data() + 5 * 12;
  EXPECT_EQ(std::vector<float>(passed_on_to_it, passed_on_to_it + 12),
            (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, -1, 1}));
}

TEST(DemoModel, EveryWordIsKnownOnceInLowerCaseWithOneKind) {
  const ParsedModel demo = DemoParameters();
  std::set<std::string> names;
  for (const auto& [name, features] : demo.config.item_names) {
    EXPECT_EQ(name, absl::AsciiStrToLower(name));
    EXPECT_TRUE(names.insert(name).second) << name;
    ASSERT_EQ(static_cast<int64_t>(features.size()), demo.config.d_f);
    double kinds = 0;
    for (size_t f = 0; f < 8; ++f) kinds += features[f];
    EXPECT_EQ(kinds, 1) << name;
  }
  EXPECT_GT(names.size(), 200u);
  EXPECT_EQ(static_cast<int64_t>(demo.config.feature_names.size()), demo.config.d_f);
}

}  // namespace
}  // namespace attend

#include "core/demo_model.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/attention_parameters.h"
#include "core/demo_vocabulary.h"

namespace attend {
namespace {

using enum WordKind;

// Features of an item. The first eight are the kinds of WordKind: 1 for the word's own, else 0.
enum Feature {
  kAnimate = 8,
  kFeminine,
  kPlural,
  kPosition,  // 0 for the first word of a sentence, 1 for the next ...
  kPositionSquared,
  kNumFeatures,
};

constexpr const char* kFeatureNames[kNumFeatures] = {"noun",
                                                     "pronoun",
                                                     "verb",
                                                     "determiner",
                                                     "adjective",
                                                     "adverb",
                                                     "connective",
                                                     "preposition",
                                                     "animate",
                                                     "feminine",
                                                     "plural",
                                                     "position",
                                                     "position_squared"};

// What a question asks for and an answer offers: query and key are the two sides of one coin.
enum Topic {
  kIsNoun,
  kIsPronoun,
  kIsVerb,
  kIsAnimate,
  kIsFeminine,
  kIsPlural,
  kWhere,
  kWhereSquared,
  kNumTopics,
};

constexpr int kNumValues = kPosition + 1;  // all that a word says of itself

// Scores are points. All are exact in float32.
constexpr float kRightKind = 256;  // a word of a kind that was asked for
constexpr float kAgreement = 32;   // both animate, both feminine ...; as many off where they differ
constexpr float kDistance = 0.25;  // off for the square of each step from where it was expected

// What each kind of word asks for, and how many words after itself it expects the answer.
constexpr struct {
  WordKind asks;
  bool for_noun, for_pronoun, for_verb;
  float expected_at;
} kQuestions[] = {
    {kNoun, false, false, true, 0},        // what does it do?
    {kPronoun, true, false, false, -4},    // whom does it stand for?
    {kVerb, true, true, false, -1},        // who does it?
    {kDeterminer, true, false, false, 1},  // which noun does it introduce?
    {kAdjective, true, true, false, 0},    // whom does it describe?
    {kAdverb, false, false, true, -1},     // which verb does it describe?
    {kConnective, false, false, true, 2},  // what does the clause that it begins say?
    {kPreposition, true, true, false, 2},  // which noun does it place?
};

class Matrix {
 public:
  Matrix(int rows, int columns) : columns_(columns), numbers_(int64_t{rows} * columns) {
    std::fill(numbers_.span().begin(), numbers_.span().end(), 0.0f);
  }
  float& at(int row, int column) { return numbers_.data()[row * columns_ + column]; }
  FloatBuffer Take() && { return std::move(numbers_); }

 private:
  int columns_;
  FloatBuffer numbers_;
};

// q_i, [kNumTopics]. With x = position and e = x_i + expected_at, the last two topics give
//   2 kDistance e x_j - kDistance x_j^2 = kDistance e^2 - kDistance (x_j - e)^2:
// what is off for distance, but for a number that all answers to i have in common.
void FillQuery(AttentionWeights* weights) {
  Matrix query(kNumTopics, kNumFeatures);
  for (const auto& question : kQuestions) {
    const int kind = static_cast<int>(question.asks);
    query.at(kIsNoun, kind) = question.for_noun ? kRightKind : 0;
    query.at(kIsPronoun, kind) = question.for_pronoun ? kRightKind : 0;
    query.at(kIsVerb, kind) = question.for_verb ? kRightKind : 0;
    query.at(kWhere, kind) = 2 * kDistance * question.expected_at;
  }
  query.at(kIsAnimate, kAnimate) = kAgreement;
  query.at(kIsFeminine, kFeminine) = kAgreement;
  query.at(kIsPlural, kPlural) = kAgreement;
  query.at(kWhere, kPosition) = 2 * kDistance;
  weights->query_weight = std::move(query).Take();
  Matrix bias(kNumTopics, 1);
  bias.at(kWhereSquared, 0) = -kDistance;
  weights->query_bias = std::move(bias).Take();
}

// k_j, [kNumTopics]: a word's own features.
void FillKey(AttentionWeights* weights) {
  Matrix key(kNumTopics, kNumFeatures);
  key.at(kIsNoun, static_cast<int>(kNoun)) = 1;
  key.at(kIsPronoun, static_cast<int>(kPronoun)) = 1;
  key.at(kIsVerb, static_cast<int>(kVerb)) = 1;
  key.at(kIsAnimate, kAnimate) = 1;
  key.at(kIsFeminine, kFeminine) = 1;
  key.at(kIsPlural, kPlural) = 1;
  key.at(kWhere, kPosition) = 1;
  key.at(kWhereSquared, kPositionSquared) = 1;
  weights->key_weight = std::move(key).Take();
}

// v_j, [kNumValues]: what j passes on is what it is and where it stands.
void FillValue(AttentionWeights* weights) {
  Matrix value(kNumValues, kNumFeatures);
  for (int i = 0; i < kNumValues; ++i) value.at(i, i) = 1;
  weights->value_weight = std::move(value).Take();
  weights->d_out = kNumValues;
}

std::vector<float> FeaturesOf(const WordGroup& group) {
  std::vector<float> features(kNumFeatures);
  features[static_cast<int>(group.kind)] = 1;
  features[kAnimate] = static_cast<float>(group.animate);
  features[kFeminine] = static_cast<float>(group.feminine);
  features[kPlural] = static_cast<float>(group.plural);
  return features;
}

}  // namespace

ParsedModel DemoParameters() {
  ParsedModel demo;
  demo.config.d_f = kNumFeatures;
  demo.config.d_k = kNumTopics;
  demo.config.d_v = kNumValues;
  demo.config.scale = 1;
  demo.config.feature_names.assign(std::begin(kFeatureNames), std::end(kFeatureNames));
  for (const WordGroup& group : DemoVocabulary()) {
    for (absl::string_view word : absl::StrSplit(group.words, ' ')) {
      demo.config.item_names.emplace_back(word, FeaturesOf(group));
    }
  }
  FillQuery(&demo.weights);
  FillKey(&demo.weights);
  FillValue(&demo.weights);
  return demo;
}

absl::StatusOr<LoadedModel> MakeDemoModel() {
  ParsedModel demo = DemoParameters();
  absl::StatusOr<std::unique_ptr<Model>> model =
      MakeAttentionModel(std::move(demo.config), std::move(demo.weights));
  if (!model.ok()) return model.status();
  return LoadedModel{*std::move(model), demo.batching};
}

}  // namespace attend

// What the layer refuses, what it says, and that nobody else suffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/random_layer.h"
#include "tests/core/run_job.h"
#include "tests/core/same_bits.h"

namespace attend {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void ExpectInvalid(const absl::Status& status, std::initializer_list<const char*> parts) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const char* part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

class Refusal : public testing::Test {
 protected:
  Refusal()
      : random_(3),
        layer_(MakeRandomLayer(random_, {.d_f = 12, .d_k = 4, .d_v = 4, .d_out = 12})),
        model_(layer_.Make()),
        sequence_(random_, 20, 12) {}

  Random random_;
  RandomLayer layer_;
  std::unique_ptr<Model> model_;
  RandomSequence sequence_;
};

TEST_F(Refusal, ItemsMustBeFinite) {
  for (float bad : {kNaN, kInfinity, -kInfinity}) {
    RandomSequence sequence(random_, 20, 12);
    sequence.item(17)[11] = bad;
    ExpectInvalid(model_->Check(sequence.input()), {"items", "item 17", "feature 11"});
  }
}

TEST_F(Refusal, MaskedItemsMustBeFiniteToo) {
  sequence_.AddKeyMask(random_);
  std::vector<uint8_t> nobody(20, 0);
  sequence_.input().key_mask = nobody;
  sequence_.item(3)[0] = kNaN;
  ExpectInvalid(model_->Check(sequence_.input()), {"items", "item 3", "feature 0"});
}

TEST_F(Refusal, FeaturesMustBeTheModels) {
  SequenceInput input = sequence_.input();
  input.items.columns = 11;
  ExpectInvalid(model_->Check(input), {"items", "11", "12"});
}

TEST_F(Refusal, LengthMustBeWithinTheModelsLimit) {
  SequenceInput input = sequence_.input();
  input.items.rows = 0;
  ExpectInvalid(model_->Check(input), {"items", "0 items", "65536"});
  RandomLayer small = MakeRandomLayer(random_, {.d_f = 12});
  small.config.max_sequence_length = 19;
  ExpectInvalid(small.Make()->Check(sequence_.input()), {"items", "20 items", "19"});
}

TEST_F(Refusal, MasksMustFitTheItems) {
  std::vector<uint8_t> short_mask(19, 1), mask(400, 1);
  SequenceInput input = sequence_.input();
  input.key_mask = short_mask;
  ExpectInvalid(model_->Check(input), {"key_mask", "19", "20"});
  input = sequence_.input();
  input.attention_mask = {mask.data(), 20, 19};
  ExpectInvalid(model_->Check(input), {"attention_mask", "[20, 19]", "[20, 20]"});
  std::vector<float> bias(400, 0);
  input = sequence_.input();
  input.attention_bias = {bias.data(), 19, 20};
  ExpectInvalid(model_->Check(input), {"attention_bias", "[19, 20]", "[20, 20]"});
}

TEST_F(Refusal, MaskBytesMustBeZeroOrOne) {
  std::vector<uint8_t> key_mask(20, 1), mask(400, 1);
  key_mask[19] = 2;
  SequenceInput input = sequence_.input();
  input.key_mask = key_mask;
  ExpectInvalid(model_->Check(input), {"key_mask", "byte 2", "item 19"});
  mask[3 * 20 + 5] = 255;
  input = sequence_.input();
  input.attention_mask = {mask.data(), 20, 20};
  ExpectInvalid(model_->Check(input), {"attention_mask", "byte 255", "[3, 5]"});
}

TEST_F(Refusal, ABiasMayHoldMinusInfinityAlone) {
  for (float bad : {kNaN, kInfinity}) {
    std::vector<float> bias(400, -kInfinity);
    bias[7 * 20 + 2] = bad;
    SequenceInput input = sequence_.input();
    input.attention_bias = {bias.data(), 20, 20};
    ExpectInvalid(model_->Check(input), {"attention_bias", "[7, 2]"});
    bias[7 * 20 + 2] = -kInfinity;
    EXPECT_TRUE(model_->Check(input).ok());
  }
}

TEST_F(Refusal, SomethingMustBeWanted) {
  sequence_.input().want_values = false;
  ExpectInvalid(model_->Check(sequence_.input()), {"want"});
}

// Which of q, k and v overflows is decided by the only large weight.
TEST(Overflow, OfAProjectionNamesItemAndHeadAndFailsThatRequestAlone) {
  for (const char* which : {"query", "key", "value"}) {
    SCOPED_TRACE(which);
    Random random(5);
    RandomLayer layer =
        MakeRandomLayer(random, {.d_f = 8, .d_k = 4, .d_v = 4, .heads = 3, .key_heads = 3});
    FloatBuffer& weight = *which == 'q'   ? layer.weights.query_weight
                          : *which == 'k' ? layer.weights.key_weight
                                          : layer.weights.value_weight;
    weight.data()[(2 * 4 + 1) * 8 + 6] = 1e20f;  // head 2, feature 6
    const auto model = layer.Make();
    RandomSequence good(random, 30, 8), bad(random, 30, 8);
    for (RandomSequence* s : {&good, &bad}) {
      for (int64_t i = 0; i < 30; ++i) s->item(i)[6] = 0;
    }
    bad.item(21)[6] = 1e19f;
    const Answers answers = RunBatch(*model, {good.input(), bad.input(), good.input()});
    ExpectInvalid(answers[1].status(), {"items", which, "item 21", "head 2"});
    const Answers alone = RunBatch(*model, {good.input()});
    ASSERT_TRUE(alone[0].ok() && answers[0].ok() && answers[2].ok());
    EXPECT_TRUE(SameBits(alone[0]->values, answers[0]->values));
    EXPECT_TRUE(SameBits(alone[0]->values, answers[2]->values));
  }
}

// d_f = d_k = d_v = 1, one head, q = k = v = x: a score is the product of two items.
RandomLayer Scalar(Normalizer normalizer, float value_weight = 1) {
  Random random(1);
  RandomLayer layer = MakeRandomLayer(
      random,
      {.d_f = 1, .d_k = 1, .d_v = 1, .heads = 1, .key_heads = 1, .d_out = 0, .biases = false});
  layer.config.normalizer = normalizer;
  layer.weights.query_weight.data()[0] = layer.weights.key_weight.data()[0] = 1;
  layer.weights.value_weight.data()[0] = value_weight;
  return layer;
}

SequenceInput ScalarInput(const std::vector<float>& items) {
  SequenceInput input;
  input.items = {items.data(), static_cast<int64_t>(items.size()), 1};
  return input;
}

TEST(Overflow, OfAnAllowedScoreNamesItemAndHead) {
  for (int n = 0; n < 6; ++n) {
    const auto model = Scalar(static_cast<Normalizer>(n)).Make();
    for (float sign : {1.0f, -1.0f}) {  // a score of -inf is as lost as one of +inf
      const std::vector<float> items = {1, 1e20f, 1, sign * 1e20f};
      const Answers answers = RunBatch(*model, {ScalarInput(items)});
      ExpectInvalid(answers[0].status(), {"items", "score", "item 1", "head 0"});
    }
  }
}

TEST(Overflow, OfAForbiddenScoreHarmsNobody) {
  for (int n = 0; n < 6; ++n) {
    const auto model = Scalar(static_cast<Normalizer>(n)).Make();
    const std::vector<float> items = {1, 1e20f, 2};
    const std::vector<uint8_t> key_mask = {1, 0, 1};
    SequenceInput input = ScalarInput(items);
    input.key_mask = key_mask;
    input.want_weights = true;
    const Answers answers = RunBatch(*model, {input});
    ASSERT_TRUE(answers[0].ok()) << answers[0].status();
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(answers[0]->weights.data()[i * 3 + 1], 0);
  }
}

TEST(Overflow, OfAResultNamesItemAndHead) {
  const auto model = Scalar(Normalizer::kNone, 1e20f).Make();
  const std::vector<float> items = {1, 1, 1e8f, 1};
  const Answers answers = RunBatch(*model, {ScalarInput(items)});
  ExpectInvalid(answers[0].status(), {"items", "result", "item", "head 0"});
}

TEST(Overflow, OfTheOutputProjectionNamesTheItem) {
  Random random(5);
  RandomLayer layer = MakeRandomLayer(random, {.d_f = 4, .d_k = 4, .d_v = 4, .d_out = 5});
  for (float& w : layer.weights.output_weight.span()) w = 3e38f;
  for (float& b : layer.weights.value_bias.span()) b = 100;
  RandomSequence sequence(random, 9, 4);
  const Answers answers = RunBatch(*layer.Make(), {sequence.input()});
  ExpectInvalid(answers[0].status(), {"items", "result", "item 0"});
}

TEST(Overflow, ScoresOfTheLargestFloatsAreNoOverflow) {
  const auto model = Scalar(Normalizer::kSoftmax).Make();
  const std::vector<float> items = {1.8e19f, -1.8e19f};  // scores of +-3.2e38
  const Answers answers = RunBatch(*model, {ScalarInput(items)});
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  EXPECT_EQ(answers[0]->values.data()[0], 1.8e19f);
  EXPECT_EQ(answers[0]->values.data()[1], -1.8e19f);
}

TEST(EmptyRows, AreAnsweredWithPlusZeroAndTheOutputsBiasForEveryNormalizer) {
  for (int n = 0; n < 6; ++n) {
    SCOPED_TRACE(n);
    Random random(8);
    RandomLayer layer = MakeRandomLayer(random, {.d_f = 6, .d_out = 7});
    layer.config.normalizer = static_cast<Normalizer>(n);
    RandomSequence sequence(random, 70, 6);
    std::vector<uint8_t> nobody(70, 0);
    sequence.input().key_mask = nobody;
    sequence.input().want_scores = sequence.input().want_weights = true;
    const Answers answers = RunBatch(*layer.Make(), {sequence.input()});
    ASSERT_TRUE(answers[0].ok());
    for (int64_t i = 0; i < 70; ++i) {
      EXPECT_TRUE(
          SameBits(answers[0]->values.span().subspan(i * 7, 7), layer.weights.output_bias.span()));
    }
    for (float s : answers[0]->scores.span()) EXPECT_EQ(s, -kInfinity);
    for (float p : answers[0]->weights.span()) EXPECT_TRUE(p == 0 && !std::signbit(p));
  }
}

TEST(Layer, ThatDisagreesWithItsConfigurationIsRefusedByName) {
  Random random(2);
  const RandomLayer layer = MakeRandomLayer(random, {.d_f = 6, .d_k = 4, .d_v = 3, .d_out = 5});
  const auto refused = [&](auto change) {
    AttentionConfig config = layer.config;
    AttentionWeights weights = layer.CopyWeights();
    change(config, weights);
    return MakeAttentionModel(std::move(config), std::move(weights)).status();
  };
  ExpectInvalid(refused([](auto& c, auto&) { c.d_f = 7; }), {"query.weight", "48", "[8, 7]"});
  ExpectInvalid(refused([](auto& c, auto&) { c.d_v = 4; }), {"value.weight", "36", "[8, 6]"});
  ExpectInvalid(refused([](auto& c, auto&) { c.num_key_heads = 3; }), {"num_key_heads", "3", "2"});
  ExpectInvalid(refused([](auto& c, auto&) { c.scale = kNaN; }), {"scale"});
  ExpectInvalid(refused([](auto& c, auto&) { c.d_k = 0; }), {"d_k", "0"});
  ExpectInvalid(refused([](auto&, auto& w) { w.d_out = 4; }), {"output.weight", "30", "[4, 6]"});
  ExpectInvalid(refused([](auto&, auto& w) { w.key_weight.data()[13] = kInfinity; }),
                {"key.weight", "13", "inf"});
  ExpectInvalid(refused([](auto&, auto& w) { w.output_bias.data()[4] = kNaN; }),
                {"output.bias", "4", "nan"});
  ExpectInvalid(refused([](auto&, auto& w) { w.output_weight = FloatBuffer(); }), {"output.bias"});
}

}  // namespace
}  // namespace attend

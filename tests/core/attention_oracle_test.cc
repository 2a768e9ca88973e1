#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <tuple>

#include "core/load_model.h"
#include "tests/core/oracle_case.h"
#include "tests/core/reference.h"
#include "tests/core/run_job.h"
#include "tests/core/same_bits.h"
#include "tests/core/tolerance.h"

namespace attend {
namespace {

class Oracle : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto read = ReadOracleCase(GetParam());
    ASSERT_TRUE(read.ok()) << read.status();
    case_ = std::make_unique<OracleCase>(*std::move(read));
    auto loaded = LoadModel(std::string(ATTEND_ORACLE_DIR) + "/" + GetParam());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = std::move(loaded->model);
  }

  std::unique_ptr<OracleCase> case_;
  std::unique_ptr<Model> model_;
};

TEST_P(Oracle, IsAnsweredWithinTheTolerance) {
  const OracleCase& c = *case_;
  ASSERT_TRUE(model_->Check(c.input).ok()) << model_->Check(c.input);
  const Answers answers = RunBatch(*model_, {c.input});
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  const Reference truth = ComputeReference(c.model.config, c.model.weights, c.input);
  const Bounds bounds = ComputeBounds(c.model.config, c.model.weights, c.input, truth);
  EXPECT_LE(WorstRatio(answers[0]->values.span(), c.values, bounds.values), 1);
  if (c.input.want_scores) {
    EXPECT_LE(WorstRatio(answers[0]->scores.span(), c.scores, bounds.scores), 1);
  }
  if (c.input.want_weights) {
    EXPECT_LE(WorstRatio(answers[0]->weights.span(), c.weights, bounds.weights), 1);
  }
}

// The case itself, its first items alone, and itself again, so that its rows stand at many places.
TEST_P(Oracle, HasTheSameBitsInABatch) {
  SequenceInput whole = case_->input, part;
  whole.want_scores = whole.want_weights = false;
  std::vector<SequenceInput> batch = {whole};
  for (int64_t n : {1, 7, 61, 100}) {
    part.items = whole.items;
    part.items.rows = std::min(n, whole.num_items());
    if (!whole.key_mask.empty()) part.key_mask = whole.key_mask.first(part.items.rows);
    batch.insert(batch.end(), {part, whole});
  }
  const Answers together = RunBatch(*model_, batch, {.in_flight = 3, .seed = 5});
  for (size_t b = 0; b < batch.size(); ++b) {
    const Answers alone = RunBatch(*model_, {batch[b]});
    ASSERT_TRUE(alone[0].ok() && together[b].ok());
    EXPECT_TRUE(SameBits(alone[0]->values, together[b]->values)) << "sequence " << b;
  }
}

// What the definition gives in float64 when one thing in it is wrong, as float32.
Reference Mistaken(const OracleCase& c, const std::string& mistake) {
  AttentionConfig config = c.model.config;
  SequenceInput input = c.input;
  if (mistake == "scale") config.scale *= 1.001f;
  if (mistake == "mask") {
    config.causal = false;
    input.key_mask = {};
    input.attention_mask = {};
  }
  const auto to_bf16 = [](double q) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(q));
    return double{std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u)};
  };
  return ComputeReference(config, c.model.weights, input,
                          mistake == "bf16" ? QueryRounding(to_bf16) : QueryRounding());
}

using NameAndMistake = std::tuple<const char*, const char*>;

class Tolerance : public testing::TestWithParam<NameAndMistake> {};

TEST_P(Tolerance, FailsAWrongAnswerAndPassesARightOne) {
  const auto& [name, mistake] = GetParam();
  const auto c = ReadOracleCase(name);
  ASSERT_TRUE(c.ok()) << c.status();
  const Reference truth = ComputeReference(c->model.config, c->model.weights, c->input);
  const Bounds bounds = ComputeBounds(c->model.config, c->model.weights, c->input, truth);
  const Reference mistaken = Mistaken(*c, mistake);
  const auto as_float = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_LE(WorstRatio(as_float(truth.values), c->values, bounds.values), 1);
  EXPECT_GT(WorstRatio(as_float(mistaken.values), c->values, bounds.values), 1);
  if (!c->weights.empty()) {
    EXPECT_GT(WorstRatio(as_float(mistaken.weights), c->weights, bounds.weights), 1);
  }
}

const char* const kPlain[] = {"single_head",
                              "heads",
                              "heads_output",
                              "edge_65",
                              "edge_513",
                              "normalizer_softmax_one",
                              "normalizer_relu",
                              "normalizer_none",
                              "normalizer_sigmoid",
                              "torch_layout",
                              "long",
                              "normalizer_sparsemax"};
const char* const kMasked[] = {"causal",
                               "key_mask",
                               "attention_mask",
                               "causal_and_key_mask",
                               "bias_masks_and_causal",
                               "normalizer_relu_causal_masked",
                               "normalizer_sparsemax_causal_masked",
                               "empty_rows_softmax"};
INSTANTIATE_TEST_SUITE_P(RoundedQueriesAndScale, Tolerance,
                         testing::Combine(testing::ValuesIn(kPlain),
                                          testing::Values("bf16", "scale")));
INSTANTIATE_TEST_SUITE_P(IgnoredMasks, Tolerance,
                         testing::Combine(testing::ValuesIn(kMasked), testing::Values("mask")));

INSTANTIATE_TEST_SUITE_P(Cases, Oracle, testing::ValuesIn(OracleCaseNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace attend

#include "server/batching/cost_model.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "server/batching/calibrate.h"
#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

std::vector<CostSample> SamplesOf(const CostCurve& curve, const std::vector<int64_t>& lengths) {
  std::vector<CostSample> samples;
  for (const int64_t n : lengths) {
    const double d = static_cast<double>(n);
    samples.push_back({n, curve.Seconds({1, d, d * d})});
  }
  return samples;
}

TEST(CostCurve, ExactSamplesGiveBackTheirCurve) {
  const CostCurve truth{20e-6, 15e-6, 4e-9};
  const CostCurve fit = FitCostCurve(SamplesOf(truth, {1, 16, 64, 256, 1024}));
  EXPECT_NEAR(fit.c, truth.c, 1e-6 * truth.c);
  EXPECT_NEAR(fit.a, truth.a, 1e-6 * truth.a);
  EXPECT_NEAR(fit.b, truth.b, 1e-6 * truth.b);
}

TEST(CostCurve, NoTermIsNegativeHoweverTheSamplesAreDisturbed) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> disturbance(0.5, 2);
  const CostCurve truth{50e-6, 1e-6, 1e-10};
  for (int round = 0; round < 200; ++round) {
    std::vector<CostSample> samples = SamplesOf(truth, {1, 16, 64, 256, 1024});
    for (CostSample& sample : samples) sample.seconds *= disturbance(random);
    const CostCurve fit = FitCostCurve(samples);
    EXPECT_GE(fit.c, 0);
    EXPECT_GE(fit.a, 0);
    EXPECT_GE(fit.b, 0);
    for (const CostSample& sample : samples) {
      const double n = static_cast<double>(sample.num_items);
      const double ratio = fit.Seconds({1, n, n * n}) / sample.seconds;
      EXPECT_GT(ratio, 0.2);
      EXPECT_LT(ratio, 5);
    }
  }
}

TEST(CostCurve, FewSamplesAreEnoughForFewTerms) {
  EXPECT_EQ(FitCostCurve({}).Seconds({1, 1, 1}), 0);
  const std::vector<CostSample> one = {{8, 1e-3}};
  EXPECT_NEAR(FitCostCurve(one).Seconds({1, 8, 64}), 1e-3, 1e-9);
}

TEST(CostCurve, TheGuessFollowsTheModelsFlop) {
  const FakeModel model;  // N FLOP
  const CostCurve guess = GuessCostCurve(model);
  EXPECT_NEAR(guess.a, 1 / 30e9, 1e-13);
  EXPECT_NEAR(guess.b, 0, 1e-13);
}

// Attention as in one head: linear projections and a quadratic part that causal halves.
class QuadraticModel : public FakeModel {
 public:
  double Cost(int64_t num_items, bool causal) const override {
    const double n = static_cast<double>(num_items);
    return 100 * n + n * n * (causal ? 0.5 : 1);
  }
};

TEST(CostModel, ACausalSequenceCostsItsShare) {
  const QuadraticModel model;
  CostModel cost(CostCurve{0, 100e-9, 1e-9});
  EXPECT_NEAR(cost.Seconds(model, TermsOf(model, 1000, false)), 1.1e-3, 1e-9);
  EXPECT_NEAR(cost.Seconds(model, TermsOf(model, 1000, true)), 0.6e-3, 1e-9);
}

TEST(CostModel, LearnsWhatBatchesTake) {
  const FakeModel model;
  CostModel cost(CostCurve{10e-6, 1e-6, 1e-9});
  const CostCurve truth{10e-6, 3e-6, 1e-9};
  CostTerms batch;
  for (const int64_t n : {20, 100, 300}) batch += TermsOf(model, n, false);
  for (int i = 0; i < 200; ++i) cost.Learn(model, batch, truth.Seconds(batch));
  EXPECT_NEAR(cost.Seconds(model, batch), truth.Seconds(batch), 0.01 * truth.Seconds(batch));
}

TEST(CostModel, ShortBatchesDoNotUnteachWhatLongSequencesCost) {
  const FakeModel model;
  const CostCurve start{50e-6, 1e-6, 1e-9};
  CostModel cost(start);
  CostTerms batch;  // many short ones share what one alone pays
  for (int i = 0; i < 64; ++i) batch += TermsOf(model, 4, false);
  for (int i = 0; i < 300; ++i) cost.Learn(model, batch, 64 * 8e-6);
  EXPECT_NEAR(cost.Seconds(model, batch), 64 * 8e-6, 64 * 1e-6);
  const CostTerms long_one = TermsOf(model, 16384, false);
  EXPECT_NEAR(cost.Seconds(model, long_one), start.Seconds(long_one),
              0.15 * start.Seconds(long_one));
}

TEST(CostModel, ADisturbedBatchMovesItLittle) {
  const FakeModel model;
  CostModel cost(CostCurve{0, 1e-6, 0});
  const CostTerms terms = TermsOf(model, 100, false);
  cost.Learn(model, terms, 10.0);
  cost.Learn(model, terms, 0);
  EXPECT_LT(cost.Seconds(model, terms), 1.04 * 100e-6);
}

TEST(Calibrate, MeasuresTheModelOnTheClock) {
  FakeModel model;
  FakeClock clock;
  model.on_tile = [&](const SequenceInput& input) {
    clock.Advance(std::chrono::microseconds(100 + 5 * input.num_items()));
  };
  const auto curve = Calibrate(model, clock.source());
  ASSERT_TRUE(curve.ok());
  EXPECT_NEAR(curve->c, 100e-6, 1e-9);
  EXPECT_NEAR(curve->a, 5e-6, 1e-9);
  EXPECT_NEAR(curve->b, 0, 1e-12);
}

TEST(Calibrate, AModelThatFailsIsRefused) {
  FakeModel model;
  model.forward_status = absl::InternalError("no primitive");
  EXPECT_EQ(Calibrate(model).status(), absl::InternalError("no primitive"));
}

}  // namespace
}  // namespace attend

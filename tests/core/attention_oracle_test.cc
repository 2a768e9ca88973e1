#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/load_model.h"
#include "tests/core/oracle_case.h"
#include "tests/core/reference.h"
#include "tests/core/run_job.h"
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
  const double values = WorstRatio(answers[0]->values.span(), c.values, bounds.values);
  EXPECT_LE(values, 1);
  RecordProperty("values", std::to_string(values));
  if (c.input.want_scores) {
    EXPECT_LE(WorstRatio(answers[0]->scores.span(), c.scores, bounds.scores), 1);
  }
  if (c.input.want_weights) {
    EXPECT_LE(WorstRatio(answers[0]->weights.span(), c.weights, bounds.weights), 1);
  }
  printf("RATIO %-40s %.3f\n", GetParam().c_str(), values);
}

INSTANTIATE_TEST_SUITE_P(Cases, Oracle, testing::ValuesIn(OracleCaseNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace attend

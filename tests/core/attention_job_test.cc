// The order of tiles: completions, cancelling, failing, what a job costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/core/random_layer.h"
#include "tests/core/run_job.h"
#include "tests/core/same_bits.h"

namespace attend {
namespace {

struct Completions {
  std::map<int64_t, int> calls;
  std::map<int64_t, absl::StatusOr<SequenceOutput>> outputs;

  SequenceDone callback() {
    return [this](int64_t b, absl::StatusOr<SequenceOutput> output) {
      ++calls[b];
      outputs[b] = std::move(output);
    };
  }
};

class AttentionJobTest : public testing::TestWithParam<int64_t> {  // d_out, 0 without projection
 protected:
  AttentionJobTest()
      : random_(4), model_(MakeRandomLayer(random_, {.d_f = 24, .d_out = GetParam()}).Make()) {
    for (int64_t n : {3, 64, 200, 1, 65, 30}) sequences_.emplace_back(random_, n, 24);
  }

  std::vector<SequenceInput> Inputs() {
    std::vector<SequenceInput> inputs;
    for (RandomSequence& s : sequences_) inputs.push_back(s.input());
    return inputs;
  }
  std::shared_ptr<Job> Start() {
    InitComputeThread();
    return *model_->Forward(PackedBatch(Inputs()), completions_.callback());
  }

  Random random_;
  std::unique_ptr<Model> model_;
  std::vector<RandomSequence> sequences_;
  Completions completions_;
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutOutputProjection, AttentionJobTest, testing::Values(0, 16));

TEST_P(AttentionJobTest, CompletesEverySequenceOnceInAnyOrderOfTiles) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    completions_ = {};
    const auto job = Start();
    RunJob(*job, {.in_flight = 1 + static_cast<int>(seed % 16), .seed = seed});
    ASSERT_EQ(completions_.calls.size(), sequences_.size());
    for (const auto& [b, calls] : completions_.calls) EXPECT_EQ(calls, 1) << "sequence " << b;
  }
}

TEST_P(AttentionJobTest, SaysHowManyTilesAreRunnable) {
  const auto job = Start();
  Workspace workspace;
  while (!job->exhausted()) {
    std::vector<Tile> claimed;
    const int64_t runnable = job->runnable();
    Tile tile;
    while (job->Claim(&tile)) claimed.push_back(tile);
    EXPECT_EQ(static_cast<int64_t>(claimed.size()), runnable);
    EXPECT_EQ(job->runnable(), 0);
    ASSERT_FALSE(claimed.empty());
    for (const Tile& t : claimed) {
      job->Run(t, workspace);
      const int64_t before = job->runnable();
      const int64_t more = job->Finish(t);
      EXPECT_EQ(job->runnable() - before, more);
    }
  }
}

TEST_P(AttentionJobTest, CostsTheSumOfItsTilesWhichIsTheModelsCost) {
  double expected = 0;
  for (size_t b = 0; b < sequences_.size(); ++b) {
    sequences_[b].input().causal = b % 2 == 1;
    expected += model_->Cost(sequences_[b].input().num_items(), b % 2 == 1);
  }
  const auto job = Start();
  Workspace workspace;
  double sum = 0;
  for (Tile tile; job->Claim(&tile);) {
    sum += tile.cost;
    job->Run(tile, workspace);
    job->Finish(tile);
  }
  EXPECT_NEAR(sum, expected, 1e-9 * expected);
}

TEST_P(AttentionJobTest, CancelledBeforeItBeganIsCancelledAndTheRestIsComputed) {
  const Answers expected = RunBatch(*model_, Inputs());
  const auto job = Start();
  job->Cancel(2);
  job->Cancel(2);
  RunJob(*job);
  for (int64_t b = 0; b < 6; ++b) {
    ASSERT_EQ(completions_.calls[b], 1);
    if (b == 2) {
      EXPECT_EQ(completions_.outputs[b].status().code(), absl::StatusCode::kCancelled);
    } else {
      ASSERT_TRUE(completions_.outputs[b].ok());
      EXPECT_TRUE(SameBits(completions_.outputs[b]->values, expected[b]->values));
    }
  }
}

TEST_P(AttentionJobTest, MayBeCancelledAfterAnyTile) {
  const Answers expected = RunBatch(*model_, Inputs());
  for (int tiles = 0;; ++tiles) {
    completions_ = {};
    const auto job = Start();
    Workspace workspace;
    Tile tile;
    for (int i = 0; i < tiles && job->Claim(&tile); ++i) {
      job->Run(tile, workspace);
      job->Finish(tile);
    }
    if (job->exhausted()) break;
    const bool completed = completions_.calls[2] == 1;
    job->Cancel(2);
    RunJob(*job);
    ASSERT_EQ(completions_.calls[2], 1);
    EXPECT_EQ(completions_.outputs[2].ok(), completed);
    for (int64_t b : {0, 1, 3, 4, 5}) {
      ASSERT_TRUE(completions_.outputs[b].ok());
      EXPECT_TRUE(SameBits(completions_.outputs[b]->values, expected[b]->values));
    }
  }
}

TEST_P(AttentionJobTest, AFailedTileFailsWhatItServesAndNobodyElse) {
  for (int failing = 0;; ++failing) {
    completions_ = {};
    const auto job = Start();
    Workspace workspace;
    Tile tile;
    int ran = 0;
    for (; job->Claim(&tile); ++ran) {
      if (ran == failing) {
        job->Fail(tile, absl::InternalError("broken"));
      } else {
        job->Run(tile, workspace);
      }
      job->Finish(tile);
    }
    EXPECT_TRUE(job->exhausted());
    int failed = 0;
    for (const auto& [b, output] : completions_.outputs) {
      ASSERT_EQ(completions_.calls[b], 1);
      EXPECT_TRUE(output.ok() || absl::IsInternal(output.status())) << output.status();
      failed += !output.ok();
    }
    ASSERT_EQ(completions_.calls.size(), 6);
    if (ran <= failing) break;
    EXPECT_GE(failed, 1);
    EXPECT_LE(failed, 5);
  }
}

TEST(AttentionModelTest, CostGrowsWithTheSequence) {
  Random random(1);
  const auto model = MakeRandomLayer(random, {.d_out = 8}).Make();
  for (bool causal : {false, true}) {
    for (int64_t n = 1; n < 300; ++n) {
      EXPECT_LT(model->Cost(n, causal), model->Cost(n + 1, causal));
    }
  }
  EXPECT_LT(model->Cost(100, true), model->Cost(100, false));
}

TEST(AttentionModelTest, LongSequencesAreComputedInSeveralTilesOfBoundedCost) {
  Random random(1);
  const auto model =
      MakeRandomLayer(random, {.d_f = 8, .d_k = 64, .d_v = 64, .heads = 1, .key_heads = 1}).Make();
  RandomSequence sequence(random, 16384, 8);
  const auto job = *model->Forward(PackedBatch({sequence.input()}), [](int64_t, auto) {});
  Tile tile;
  InitComputeThread();
  Workspace workspace;
  int tiles = 0;
  for (; tiles < 2000 && job->Claim(&tile); ++tiles) {
    EXPECT_LE(tile.cost, 1.01e8);
    job->Cancel(0);  // how it is cut is all that matters here
    job->Run(tile, workspace);
    job->Finish(tile);
  }
  EXPECT_GE(tiles, 256 + 3 * 256);
}

}  // namespace
}  // namespace attend

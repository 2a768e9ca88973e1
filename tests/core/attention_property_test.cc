// Random layers and requests: against the definition in float64, and bit against bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/executor.h"
#include "tests/core/random_layer.h"
#include "tests/core/reference.h"
#include "tests/core/run_job.h"
#include "tests/core/same_bits.h"
#include "tests/core/tolerance.h"

namespace attend {
namespace {

// Mostly short, now and then long enough for several blocks of keys.
int64_t AnyLength(Random& random) {
  if (random.Chance(0.04)) return random.Int(500, 1100);
  return random.Chance(0.3) ? random.Int(60, 200) : random.Int(1, 70);
}

std::vector<RandomSequence> AnySequences(Random& random, int64_t count, int64_t d_f) {
  std::vector<RandomSequence> sequences;
  for (int64_t b = 0; b < count; ++b) {
    sequences.emplace_back(random, AnyLength(random), d_f);
    sequences.back().AddAnything(random);
  }
  return sequences;
}

std::vector<SequenceInput> Inputs(std::vector<RandomSequence>& sequences) {
  std::vector<SequenceInput> inputs;
  for (RandomSequence& s : sequences) inputs.push_back(s.input());
  return inputs;
}

void ExpectWithinTolerance(const RandomLayer& layer, const SequenceInput& input,
                           const SequenceOutput& got) {
  const Reference truth = ComputeReference(layer.config, layer.weights, input);
  const Bounds bounds = ComputeBounds(layer.config, layer.weights, input, truth);
  EXPECT_EQ(got.values.empty(), !input.want_values);
  EXPECT_EQ(got.scores.empty(), !input.want_scores);
  EXPECT_EQ(got.weights.empty(), !input.want_weights);
  if (input.want_values) {
    EXPECT_LE(WorstRatio(got.values.span(), truth.values, bounds.values), 1);
  }
  if (input.want_scores) {
    EXPECT_LE(WorstRatio(got.scores.span(), truth.scores, bounds.scores), 1);
  }
  if (input.want_weights) {
    EXPECT_LE(WorstRatio(got.weights.span(), truth.weights, bounds.weights), 1);
  }
}

TEST(AttentionProperty, AnyBatchOfAnyLayerIsWithinTheTolerance) {
  for (uint32_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomLayer layer = MakeAnyLayer(random);
    const auto model = layer.Make();
    auto sequences = AnySequences(random, random.Int(1, 5), layer.config.d_f);
    const Answers answers =
        RunBatch(*model, Inputs(sequences), {static_cast<int>(random.Int(1, 8)), seed});
    for (size_t b = 0; b < sequences.size(); ++b) {
      ASSERT_TRUE(model->Check(sequences[b].input()).ok());
      ASSERT_TRUE(answers[b].ok()) << answers[b].status();
      ExpectWithinTolerance(layer, sequences[b].input(), *answers[b]);
    }
  }
}

TEST(AttentionProperty, ValuesHaveTheSameBitsInAnyCompanyPlaceAndOrder) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomLayer layer = MakeAnyLayer(random);
    const auto model = layer.Make();
    auto sequences = AnySequences(random, random.Int(2, 8), layer.config.d_f);
    const std::vector<SequenceInput> inputs = Inputs(sequences);
    const Answers together = RunBatch(*model, inputs, {static_cast<int>(random.Int(1, 16)), seed});
    for (size_t b = 0; b < inputs.size(); ++b) {
      const Answers alone = RunBatch(*model, {inputs[b]});
      ASSERT_TRUE(alone[0].ok() && together[b].ok());
      EXPECT_TRUE(SameBits(alone[0]->values, together[b]->values)) << "sequence " << b;
      EXPECT_TRUE(SameBits(alone[0]->scores, together[b]->scores)) << "sequence " << b;
      EXPECT_TRUE(SameBits(alone[0]->weights, together[b]->weights)) << "sequence " << b;
    }
  }
}

TEST(AttentionProperty, ValuesHaveTheSameBitsWhateverElseIsAskedFor) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomLayer layer = MakeAnyLayer(random);
    const auto model = layer.Make();
    auto sequences = AnySequences(random, 1, layer.config.d_f);
    SequenceInput input = sequences[0].input();
    input.want_values = true;
    input.want_scores = input.want_weights = false;
    const Answers plain = RunBatch(*model, {input});
    input.want_scores = input.want_weights = true;
    const Answers all = RunBatch(*model, {input});
    ASSERT_TRUE(plain[0].ok() && all[0].ok());
    EXPECT_TRUE(SameBits(plain[0]->values, all[0]->values));
  }
}

TEST(AttentionProperty, WhatAnItemMayNotAttendToNeverReachesItsBits) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomLayer layer = MakeAnyLayer(random);
    const auto model = layer.Make();
    auto sequences = AnySequences(random, 1, layer.config.d_f);
    SequenceInput& input = sequences[0].input();
    input.want_values = true;
    const int64_t n = input.num_items(), changed = random.Int(0, n - 1);
    const Answers before = RunBatch(*model, {input});
    const Reference truth = ComputeReference(layer.config, layer.weights, input);
    for (int64_t f = 0; f < layer.config.d_f; ++f) {
      sequences[0].item(changed)[f] = random.Normal(random.Chance(0.5) ? 1 : 1e12f);
    }
    const Answers after = RunBatch(*model, {input});
    ASSERT_TRUE(before[0].ok() && after[0].ok());
    const int64_t d_out = model->info().d_out;
    for (int64_t i = 0; i < n; ++i) {
      if (i == changed || truth.allowed[i * n + changed]) continue;
      EXPECT_TRUE(SameBits(before[0]->values.span().subspan(i * d_out, d_out),
                           after[0]->values.span().subspan(i * d_out, d_out)))
          << "item " << i << " of " << n << ", changed " << changed;
    }
  }
}

TEST(AttentionProperty, ValuesHaveTheSameBitsOnAnyNumberOfThreads) {
  Random random(7);
  for (int trial = 0; trial < 4; ++trial) {
    const RandomLayer layer = MakeAnyLayer(random);
    const auto model = layer.Make();
    auto sequences = AnySequences(random, 12, layer.config.d_f);
    const std::vector<SequenceInput> inputs = Inputs(sequences);
    const Answers expected = RunBatch(*model, inputs);
    for (int threads : {1, 2, 3, 4, 8, 16}) {
      SCOPED_TRACE(threads);
      Answers answers(inputs.size());
      Executor executor({.threads = threads});
      auto job = model->Forward(PackedBatch(inputs),
                                [&](int64_t b, absl::StatusOr<SequenceOutput> output) {
                                  answers[b] = std::move(output);
                                });
      ASSERT_TRUE(job.ok());
      executor.Submit(*job, {}, 1);
      executor.WaitIdle();
      for (size_t b = 0; b < inputs.size(); ++b) {
        ASSERT_TRUE(answers[b].ok()) << answers[b].status();
        EXPECT_TRUE(SameBits(expected[b]->values, answers[b]->values));
      }
    }
  }
}

TEST(AttentionProperty, ItemsMayLieAnywhereInMemory) {
  Random random(11);
  const RandomLayer layer = MakeRandomLayer(random, {.d_f = 32, .d_k = 8, .d_v = 8});
  const auto model = layer.Make();
  RandomSequence sequence(random, 130, 32);
  const Answers expected = RunBatch(*model, {sequence.input()});
  for (int64_t stride : {32, 33, 47}) {
    std::vector<float> moved(130 * stride + 1);
    for (int64_t i = 0; i < 130; ++i) {
      std::copy_n(sequence.item(i), 32, moved.data() + 1 + i * stride);
    }
    SequenceInput input = sequence.input();
    input.items = {moved.data() + 1, 130, 32, stride};
    const Answers answers = RunBatch(*model, {input});
    EXPECT_TRUE(SameBits(expected[0]->values, answers[0]->values)) << "stride " << stride;
  }
}

}  // namespace
}  // namespace attend

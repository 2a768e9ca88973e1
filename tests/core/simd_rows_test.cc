#include "core/simd_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "core/float_buffer.h"
#include "core/onednn_runtime.h"
#include "tests/core/random_layer.h"

namespace attend {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kWidth = 48;

class Rows : public testing::Test {
 protected:
  Rows() : row_(kWidth) { InitComputeThread(); }

  void Fill(float value) { std::fill(row_.span().begin(), row_.span().end(), value); }
  ScoreRow Input(int64_t limit) {
    ScoreRow row;
    row.scores = row_.data();
    row.width = kWidth;
    row.limit = limit;
    return row;
  }

  FloatBuffer row_;
};

TEST_F(Rows, ExponentialIsWithinTwoUlpEverywhere) {
  for (float x = 0; x > -87.3f; x -= 0.00731f) {
    Fill(x);
    ExpRow(row_.data(), kWidth, 0, 1);
    const double truth = std::exp(static_cast<double>(x));
    // The product with log2 e rounds too: |x| u more.
    EXPECT_NEAR(row_.data()[7] / truth, 1, (2 + 2 * std::abs(x)) * 0x1p-24) << x;
  }
}

TEST_F(Rows, ExponentialOfZeroIsOneAndOfMinusInfinityZero) {
  Fill(-kInfinity);
  row_.data()[3] = 5;
  row_.data()[4] = -1000;
  EXPECT_EQ(ExpRow(row_.data(), kWidth, 5, 1), 1);
  for (int64_t j = 0; j < kWidth; ++j) EXPECT_EQ(row_.data()[j], j == 3 ? 1 : 0);
}

TEST_F(Rows, ScoresAreScaledAndBiasedWhereTheyAreAllowedAndNothingElseCounts) {
  std::array<float, kWidth> bias;
  std::array<uint8_t, kWidth> mask, key_mask;
  bias.fill(0.5f);
  mask.fill(1);
  key_mask.fill(1);
  for (int64_t limit : {1, 7, 8, 15, 16, 17, 31, 48}) {
    for (int64_t j = 0; j < kWidth; ++j) row_.data()[j] = static_cast<float>(j);
    mask[3] = key_mask[9] = 0;
    bias[12] = -kInfinity;
    row_.data()[3] = kNaN;
    row_.data()[9] = kInfinity;
    row_.data()[12] = 1e38f;
    for (int64_t j = limit; j < kWidth; ++j) row_.data()[j] = kNaN;
    ScoreRow input = Input(limit);
    input.scale = 2;
    input.bias = bias.data();
    input.mask = mask.data();
    input.key_mask = key_mask.data();
    const ScoreRowResult result = FinishScores(input);
    EXPECT_TRUE(result.finite);
    float maximum = -kInfinity;
    for (int64_t j = 0; j < kWidth; ++j) {
      const bool allowed = j < limit && j != 3 && j != 9 && j != 12;
      const float expected = allowed ? 2 * static_cast<float>(j) + 0.5f : -kInfinity;
      EXPECT_EQ(row_.data()[j], expected) << j << " of " << limit;
      maximum = std::max(maximum, expected);
    }
    EXPECT_EQ(result.maximum, maximum);
  }
}

TEST_F(Rows, AnAllowedNumberThatIsNotFiniteIsSeenWhereverItStands) {
  for (int64_t j = 0; j < 45; ++j) {
    for (float bad : {kNaN, kInfinity, -kInfinity}) {
      Fill(1);
      row_.data()[j] = bad;
      EXPECT_FALSE(FinishScores(Input(45)).finite) << bad << " at " << j;
      Fill(1);
      row_.data()[j] = bad;
      EXPECT_FALSE(ScanProducts(row_.data(), kWidth, 45).finite) << bad << " at " << j;
      Fill(1);
      row_.data()[j] = bad;
      EXPECT_FALSE(AllFinite(row_.data(), 45)) << bad << " at " << j;
      EXPECT_FALSE(FinishRow(row_.data(), kWidth, 1, row_.data())) << bad << " at " << j;
    }
  }
  Fill(1);
  row_.data()[45] = kNaN;
  EXPECT_TRUE(AllFinite(row_.data(), 45));
  EXPECT_TRUE(ScanProducts(row_.data(), kWidth, 45).finite);
}

TEST_F(Rows, NormalizersGivePlusZeroOutsideWhatIsAllowed) {
  const auto expect_zero_at_5 = [&](auto normalize) {
    Fill(0.25f);
    row_.data()[5] = -kInfinity;
    normalize();
    EXPECT_TRUE(row_.data()[5] == 0 && !std::signbit(row_.data()[5]));
  };
  expect_zero_at_5([&] { SigmoidRow(row_.data(), kWidth); });
  expect_zero_at_5([&] { ReluRow(row_.data(), kWidth, 0.5f); });
  expect_zero_at_5([&] { NoneRow(row_.data(), kWidth); });
  expect_zero_at_5([&] { SparsemaxRow(row_.data(), kWidth, 0.25f, -0.1f); });
  expect_zero_at_5([&] { ExpRow(row_.data(), kWidth, 0.25f, 1); });
}

TEST_F(Rows, SoftmaxInOnePassHasTheBitsOfTwo) {
  for (int64_t limit : {0, 1, 17, 48}) {
    for (float before : {-kInfinity, 0.5f, 100.0f}) {
      FloatBuffer fused(kWidth);
      for (int64_t j = 0; j < kWidth; ++j) {
        fused.data()[j] = row_.data()[j] = std::sin(static_cast<float>(j));
      }
      const float maximum = std::max(before, ScanProducts(row_.data(), kWidth, limit).maximum);
      float sum = 0;
      if (maximum == -kInfinity) {
        Fill(0);
      } else {
        sum = ExpRow(row_.data(), kWidth, maximum, 0.125f);
      }
      const SoftmaxRowResult result = SoftmaxProducts(fused.data(), kWidth, limit, before, 0.125f);
      EXPECT_TRUE(result.finite);
      EXPECT_EQ(result.maximum, maximum);
      EXPECT_EQ(result.sum, sum);
      EXPECT_EQ(std::memcmp(fused.data(), row_.data(), kWidth * sizeof(float)), 0);
    }
  }
  Fill(kNaN);
  EXPECT_FALSE(SoftmaxProducts(row_.data(), kWidth, 1, 0, 1).finite);
}

TEST_F(Rows, FinishedRowsHaveNoNegativeZero) {
  Fill(-0.0f);
  FinishRow(row_.data(), kWidth, 1, row_.data());
  for (float y : row_.span()) EXPECT_FALSE(std::signbit(y));
}

TEST(AddBiasTransposed, PutsRowsWhereColumnsWere) {
  for (int64_t lanes : {8, 16}) {
    std::vector<float> from(lanes * 29), bias(24), to(lanes * 24, -1);
    std::iota(from.begin(), from.end(), 0.0f);
    std::iota(bias.begin(), bias.end(), 0.5f);
    const MatrixView<const float> rows(from.data(), lanes, 24, 29);
    EXPECT_TRUE(AddBiasTransposed(rows, bias.data(), to.data()));
    for (int64_t r = 0; r < lanes; ++r) {
      for (int64_t c = 0; c < 24; ++c) EXPECT_EQ(to[c * lanes + r], from[r * 29 + c] + bias[c]);
    }
    for (int64_t place : {int64_t{0}, 29 * (lanes - 1) + 23}) {
      std::vector<float> bad = from;
      bad[place] = kNaN;
      EXPECT_FALSE(AddBiasTransposed({bad.data(), lanes, 24, 29}, bias.data(), to.data()));
    }
  }
}

TEST(AddBias, AddsToEveryRowAndLeavesWhatLiesBetweenThem) {
  constexpr int64_t kRows = 3;
  for (int64_t columns : {1, 7, 8, 29}) {
    std::vector<float> from(kRows * 31), bias(columns), to(kRows * 33, -1);
    std::iota(from.begin(), from.end(), 0.0f);
    std::iota(bias.begin(), bias.end(), 0.5f);
    EXPECT_TRUE(
        AddBias({from.data(), kRows, columns, 31}, bias.data(), {to.data(), kRows, columns, 33}));
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < 33; ++c) {
        EXPECT_EQ(to[r * 33 + c], c < columns ? from[r * 31 + c] + bias[c] : -1.0f);
      }
    }
    from[2 * 31 + columns - 1] = kInfinity;
    EXPECT_FALSE(
        AddBias({from.data(), kRows, columns, 31}, bias.data(), {to.data(), kRows, columns, 33}));
  }
}

}  // namespace
}  // namespace attend

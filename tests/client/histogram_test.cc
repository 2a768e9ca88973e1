#include "client/histogram.h"

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace attend::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Histogram, AnEmptyOneIsZeroEverywhere) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.Percentile(99), 0);
}

TEST(Histogram, ValuesBelow2048AreExact) {
  Histogram histogram;
  for (int64_t value = 0; value < 2048; ++value) histogram.Record(value);
  for (int64_t value = 1; value < 2048; ++value) {
    EXPECT_EQ(histogram.Percentile(100.0 * (value + 1) / 2048), value);
  }
}

TEST(Histogram, EveryMagnitudeKeepsThreeDigitsAndIsNeverBelowTheTruth) {
  for (int64_t value = 1; value < Histogram::kHighestValue / 3; value = value * 3 + 1) {
    Histogram histogram;
    histogram.Record(value);
    histogram.Record(Histogram::kHighestValue);
    const int64_t p50 = histogram.Percentile(50);
    EXPECT_GE(p50, value);
    EXPECT_LE(p50 - value, value / 1024);
  }
}

TEST(Histogram, PercentilesAreThoseOfTheSortedValuesWithinThePrecision) {
  std::mt19937_64 random(7);
  Histogram histogram;
  std::vector<int64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<int64_t>(std::exp(static_cast<double>(random() % 2800) / 100)));
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double percentile : {0.1, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const int64_t truth =
        values[static_cast<size_t>(std::ceil(percentile / 100 * 20'000 - 1e-9)) - 1];
    EXPECT_GE(histogram.Percentile(percentile), truth) << percentile;
    EXPECT_LE(histogram.Percentile(percentile) - truth, truth / 1024) << percentile;
  }
  EXPECT_EQ(histogram.Percentile(100), values.back());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(Histogram, OutOfRangeValuesCountAtTheEnds) {
  Histogram histogram;
  histogram.Record(-5);
  histogram.Record(INT64_MAX);
  EXPECT_EQ(histogram.Percentile(50), 0);
  EXPECT_EQ(histogram.max(), Histogram::kHighestValue);
}

TEST(Histogram, AddingIsTheSameAsRecordingBoth) {
  Histogram all, first, second;
  for (int64_t value = 1; value < 1'000'000; value += 997) {
    all.Record(value);
    (value % 2 ? first : second).Record(value);
  }
  first.Add(second);
  EXPECT_EQ(first.Encoded(), all.Encoded());
  EXPECT_EQ(first.count(), all.count());
}

// Reads what Encoded wrote, by the format's description.
class Decoded {
 public:
  explicit Decoded(const std::string& base64) {
    EXPECT_TRUE(absl::Base64Unescape(base64, &bytes_));
    cookie = Big(4);
    const uint64_t compressed = Big(4);
    EXPECT_EQ(compressed, bytes_.size() - at_);
    at_ += 2;  // zlib's header
    const bool last_block = Little(1) == 1;
    const uint64_t size = Little(2);
    EXPECT_TRUE(last_block);
    EXPECT_EQ(size ^ 0xffff, Little(2));
    inner_cookie = Big(4);
    const uint64_t payload = Big(4);
    EXPECT_EQ(payload, size - 40);
    Big(4);
    digits = Big(4);
    lowest = Big(8);
    highest = Big(8);
    EXPECT_EQ(Big(8), 0x3ff0000000000000u);
    for (const size_t end = at_ + payload; at_ < end;) {
      const int64_t count = ZigZag();
      if (count < 0) {
        counts.resize(counts.size() - count, 0);
      } else {
        counts.push_back(count);
      }
    }
  }

  uint64_t cookie, inner_cookie, digits, lowest, highest;
  std::vector<int64_t> counts;

 private:
  uint64_t Big(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[at_++]);
    return value;
  }
  uint64_t Little(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[at_++])} << 8 * i;
    return value;
  }
  int64_t ZigZag() {
    uint64_t bits = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(bytes_[at_++]);
      bits |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
  }

  std::string bytes_;
  size_t at_ = 0;
};

TEST(Histogram, TheEncodingIsHdrHistogramsV2) {
  Histogram histogram;
  for (int64_t value : {0, 3, 3, 2047, 2048, 2049, 4096}) histogram.Record(value);
  EXPECT_THAT(histogram.Encoded(), StartsWith("HISTFAAA"));
  const Decoded decoded(histogram.Encoded());
  EXPECT_EQ(decoded.cookie, 0x1c849314u);
  EXPECT_EQ(decoded.inner_cookie, 0x1c849313u);
  EXPECT_EQ(decoded.digits, 3u);
  EXPECT_EQ(decoded.lowest, 1u);
  EXPECT_EQ(decoded.highest, static_cast<uint64_t>(Histogram::kHighestValue));
  // Bucket 1 begins at index 2048 with steps of 2, bucket 2 at 3072 with steps of 4.
  ASSERT_EQ(decoded.counts.size(), 3073u);
  EXPECT_EQ(decoded.counts[0], 1);
  EXPECT_EQ(decoded.counts[3], 2);
  EXPECT_EQ(decoded.counts[2047], 1);
  EXPECT_EQ(decoded.counts[2048], 2);
  EXPECT_EQ(decoded.counts[3072], 1);
}

TEST(Histogram, ALogHasItsHeaderAndOneLineForEachInterval) {
  EXPECT_THAT(HistogramLogHeader(1.5),
              StartsWith("#[Histogram log format version 1.3]\n#[StartTime: 1.500 (seconds"));
  Histogram histogram;
  histogram.Record(2'500'000);
  EXPECT_THAT(HistogramLogLine(1, 0.5, histogram), StartsWith("1.000,0.500,2.500,HISTFAAA"));
  EXPECT_THAT(HistogramLogLine(1, 0.5, histogram), HasSubstr("\n"));
}

}  // namespace
}  // namespace attend::client

#include "server/rpc/element_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace attend {
namespace {

using ::testing::HasSubstr;

std::vector<float> Decoded(ElementType type, const std::vector<uint8_t>& bytes) {
  std::vector<float> floats(bytes.size() / SizeOf(type));
  const Bytes piece(bytes);
  DecodeFloats(type, ByteRange(std::span(&piece, 1)), floats);
  return floats;
}

std::vector<uint8_t> Encoded(ElementType type, const std::vector<float>& floats) {
  std::vector<uint8_t> bytes(floats.size() * SizeOf(type));
  EncodeFloats(type, floats, bytes.data());
  return bytes;
}

std::vector<uint8_t> AllPatterns() {
  std::vector<uint8_t> bytes;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    bytes.push_back(bits & 0xff);
    bytes.push_back(bits >> 8);
  }
  return bytes;
}

// The value of a float with `exponent` and `mantissa` bits, from the format's definition.
double ValueOf(uint32_t bits, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const int field = (bits >> mantissa) & ((1 << exponent) - 1);
  const double fraction = (bits & ((1u << mantissa) - 1)) / std::exp2(mantissa);
  const double sign = bits >> (exponent + mantissa) ? -1 : 1;
  if (field == (1 << exponent) - 1) {
    return fraction == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  return field == 0 ? sign * fraction * std::exp2(1 - bias)
                    : sign * (1 + fraction) * std::exp2(field - bias);
}

class SixteenBits : public ::testing::TestWithParam<ElementType> {
 protected:
  int exponent() const { return GetParam() == ElementType::kF16 ? 5 : 8; }
  double Value(uint32_t bits) const { return ValueOf(bits, exponent(), 15 - exponent()); }
};

TEST_P(SixteenBits, EveryPatternDecodesToItsValueAndBack) {
  const std::vector<uint8_t> patterns = AllPatterns();
  const std::vector<float> floats = Decoded(GetParam(), patterns);
  const std::vector<uint8_t> back = Encoded(GetParam(), floats);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = Value(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(floats[bits])) << bits;
      ASSERT_TRUE(std::isnan(Value(back[2 * bits] | back[2 * bits + 1] << 8))) << bits;
      continue;
    }
    ASSERT_EQ(floats[bits], value) << bits;
    ASSERT_EQ(std::signbit(floats[bits]), bits >> 15) << bits;
    ASSERT_EQ(back[2 * bits] | back[2 * bits + 1] << 8, static_cast<int>(bits));
  }
}

// Between two neighbours: below the middle, at it, above it; it and its negative.
TEST_P(SixteenBits, RoundsToTheNearestAndTiesToEven) {
  const uint32_t infinity = ((1u << exponent()) - 1) << (15 - exponent());
  for (uint32_t low = 0; low + 1 < infinity; ++low) {
    const float middle = static_cast<float>((Value(low) + Value(low + 1)) / 2);
    const uint32_t even = low + (low & 1);
    const std::vector<uint8_t> bytes =
        Encoded(GetParam(),
                {std::nextafterf(middle, 0), middle, std::nextafterf(middle, INFINITY), -middle});
    const auto at = [&](int i) { return uint32_t{bytes[2 * i]} | uint32_t{bytes[2 * i + 1]} << 8; };
    ASSERT_EQ(at(0), low);
    ASSERT_EQ(at(1), even);
    ASSERT_EQ(at(2), low + 1);
    ASSERT_EQ(at(3), even | 0x8000);
  }
}

TEST_P(SixteenBits, WhatIsTooLargeBecomesInfinite) {
  const std::vector<float> back = Decoded(
      GetParam(),
      Encoded(GetParam(), {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}));
  EXPECT_EQ(back[0], INFINITY);
  EXPECT_EQ(back[1], -INFINITY);
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBits,
                         ::testing::Values(ElementType::kF16, ElementType::kBF16));

TEST(ElementType, Float64BeyondFloat32IsInfiniteAndTheRestIsRounded) {
  const std::vector<double> doubles = {1.0 / 3, 1e300, -1e300, 0x1p-149, INFINITY};
  std::vector<uint8_t> bytes(doubles.size() * sizeof(double));
  std::memcpy(bytes.data(), doubles.data(), bytes.size());
  EXPECT_THAT(Decoded(ElementType::kF64, bytes),
              ::testing::ElementsAre(1.0f / 3, INFINITY, -INFINITY, 0x1p-149f, INFINITY));
}

TEST(ElementType, Float32AndFloat64KeepEveryBit) {
  const std::vector<float> floats = {1.0f / 3, -0.0f, 1e-38f, INFINITY};
  for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
    const std::vector<float> back = Decoded(type, Encoded(type, floats));
    for (size_t i = 0; i < floats.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(floats[i]));
    }
  }
}

TEST(ElementType, AnUnknownNameIsRefusedWithTheChoice) {
  EXPECT_EQ(*ParseElementType("", "items.dtype"), ElementType::kF32);
  EXPECT_EQ(*ParseElementType("BF16", "items.dtype"), ElementType::kBF16);
  const auto unknown = ParseElementType("FP32", "items.dtype");
  EXPECT_THAT(unknown.status().message(), HasSubstr("items.dtype: unknown element type \"FP32\""));
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"F32\""));
}

}  // namespace
}  // namespace attend

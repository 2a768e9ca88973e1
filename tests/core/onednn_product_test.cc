#include "core/onednn_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/onednn_runtime.h"
#include "tests/core/random_layer.h"
#include "tests/core/same_bits.h"

namespace attend {
namespace {

FloatBuffer Numbers(Random& random, int64_t size) {
  FloatBuffer buffer(size);
  for (float& x : buffer.span()) x = random.Normal(1);
  return buffer;
}

TEST(Product, MultipliesByAPackedMatrix) {
  InitComputeThread();
  Random random(1);
  const int64_t rows = 5, inner = 2 * PackLanes(), columns = 3 * PackLanes();
  const FloatBuffer a = Numbers(random, rows * inner), b = Numbers(random, inner * columns);
  FloatBuffer c(rows * columns);
  Workspace workspace;
  ASSERT_TRUE(
      (*GetProduct({rows, inner, columns}))->Run(a.data(), b.data(), c.data(), workspace).ok());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < columns; ++o) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < inner; ++i) {
        const double term =
            double{a.data()[r * inner + i]} * b.data()[PackedIndex(i, o, inner, PackLanes())];
        sum += term;
        squares += term * term;
      }
      EXPECT_NEAR(c.data()[r * columns + o], sum,
                  8 * 0x1p-24 * std::sqrt(inner * (squares + sum * sum)));
    }
  }
}

TEST(Product, GivesARowTheSameBitsAtEveryHeightAndPlace) {
  InitComputeThread();
  Random random(2);
  for (const auto& [inner, columns] : {std::pair(768, 384), std::pair(64, 512), std::pair(512, 64),
                                       std::pair(16, 16), std::pair(1536, 208)}) {
    const FloatBuffer a = Numbers(random, 64 * inner), b = Numbers(random, inner * columns);
    FloatBuffer whole(64 * columns), part(64 * columns);
    Workspace workspace;
    ASSERT_TRUE(
        (*GetProduct({64, inner, columns}))->Run(a.data(), b.data(), whole.data(), workspace).ok());
    for (int64_t height = 4; height <= 60; height += 4) {
      const int64_t first = random.Int(0, 64 - height);
      const auto product = *GetProduct({height, inner, columns});
      ASSERT_TRUE(product->Run(a.data() + first * inner, b.data(), part.data(), workspace).ok());
      EXPECT_TRUE(SameBits(part.span().first(height * columns),
                           whole.span().subspan(first * columns, height * columns)))
          << "height " << height << " at " << first;
    }
  }
}

TEST(Product, IsKeptInABoundedCache) {
  const PrimitiveCacheStats before = GetPrimitiveCacheStats();
  const auto first = *GetProduct({4, 32, 16});
  EXPECT_EQ(*GetProduct({4, 32, 16}), first);
  const int64_t shapes = before.capacity + 10;
  for (int64_t i = 0; i < shapes; ++i) ASSERT_TRUE(GetProduct({1 + i, 48, 16}).ok());
  const PrimitiveCacheStats after = GetPrimitiveCacheStats();
  EXPECT_EQ(after.size, after.capacity);
  EXPECT_GE(after.misses - before.misses, shapes);
  EXPECT_NE(*GetProduct({4, 32, 16}), first);  // it was the least recently used
}

TEST(Product, OfAShapeThatOneDnnRefusesIsAnError) {
  const auto product = GetProduct({0, -8, 8});
  ASSERT_FALSE(product.ok());
  EXPECT_EQ(product.status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace attend

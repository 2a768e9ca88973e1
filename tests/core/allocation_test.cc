// In steady state the tiles ask nobody for memory, apart from what oneDNN asks for within a call.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/onednn_product.h"
#include "core/onednn_runtime.h"
#include "tests/core/random_layer.h"
#include "tests/core/run_job.h"

namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace attend {
namespace {

// What one call of oneDNN allocates for its own bookkeeping.
int64_t AllocationsOfACall() {
  const auto product = *GetProduct({64, 64, 64});
  const FloatBuffer a(64 * 64), b(64 * 64);
  FloatBuffer c(64 * 64);
  Workspace workspace;
  EXPECT_TRUE(product->Run(a.data(), b.data(), c.data(), workspace).ok());
  const int64_t before = allocations;
  EXPECT_TRUE(product->Run(a.data(), b.data(), c.data(), workspace).ok());
  return allocations - before;
}

TEST(Allocations, OfTilesInSteadyStateAreOneDnnsAlone) {
  InitComputeThread();
  const int64_t each = AllocationsOfACall();
  Random random(1);
  for (int64_t d_out : {0, 32}) {
    const auto model =
        MakeRandomLayer(random, {.d_f = 32, .d_k = 16, .d_v = 16, .heads = 2, .d_out = d_out})
            .Make();
    const RandomSequence sequence(random, 700, 32);
    Workspace workspace;
    for (bool warm : {false, true}) {
      const auto job = *model->Forward(PackedBatch({sequence.input()}),
                                       [](int64_t, const absl::StatusOr<SequenceOutput>&) {});
      const int64_t calls_before = GetPrimitiveCacheStats().hits;
      int64_t counted = 0;
      for (Tile tile; job->Claim(&tile);) {
        const int64_t before = allocations;
        job->Run(tile, workspace);
        counted += allocations - before;
        job->Finish(tile);
      }
      const int64_t calls = GetPrimitiveCacheStats().hits - calls_before;
      ASSERT_GT(calls, 0);
      if (warm) {
        EXPECT_EQ(counted, each * calls);
      }
    }
  }
}

}  // namespace
}  // namespace attend

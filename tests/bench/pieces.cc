// The parts of a layer, one by one (Google Benchmark).
#include <benchmark/benchmark.h>

#include <vector>

#include "core/onednn_product.h"
#include "core/onednn_runtime.h"
#include "core/simd_rows.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/workload.h"

namespace attend::bench {
namespace {

FloatBuffer Numbers(int64_t size) {
  FloatBuffer buffer(size);
  Random random(1);
  for (float& x : buffer.span()) x = random.Uniform(-1, 1);
  return buffer;
}

void CountFlop(benchmark::State& state, double flop) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flop * state.iterations(), benchmark::Counter::kIsRate);
  state.counters["peak"] = MeasureFmaPeak();
}

void BM_Product(benchmark::State& state) {
  InitComputeThread();
  const ProductShape shape{state.range(0), state.range(1), state.range(2)};
  const auto product = *GetProduct(shape);
  const FloatBuffer a = Numbers(shape.rows * shape.inner), b = Numbers(shape.inner * shape.columns);
  FloatBuffer c(shape.rows * shape.columns);
  Workspace workspace;
  for (auto _ : state) {
    if (!product->Run(a.data(), b.data(), c.data(), workspace).ok()) state.SkipWithError("oneDNN");
  }
  CountFlop(state, shape.flop());
}
BENCHMARK(BM_Product)
    ->ArgNames({"rows", "inner", "columns"})
    ->Args({64, 768, 384})
    ->Args({64, 64, 512})
    ->Args({64, 512, 64})
    ->Args({32, 384, 384})
    ->Args({4, 768, 384})
    ->Args({4, 8, 8});  // the cost of a call

void BM_FindProduct(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(GetProduct({64, 64, 512}));
}
BENCHMARK(BM_FindProduct);

void BM_Exponential(benchmark::State& state) {
  InitComputeThread();
  FloatBuffer row = Numbers(512);
  for (auto _ : state) benchmark::DoNotOptimize(ExpRow(row.data(), 512, 1, 0.125f));
  state.SetItemsProcessed(512 * state.iterations());
}
BENCHMARK(BM_Exponential);

void BM_ScanProducts(benchmark::State& state) {
  InitComputeThread();
  FloatBuffer row = Numbers(512);
  for (auto _ : state) benchmark::DoNotOptimize(ScanProducts(row.data(), 512, 512));
  state.SetItemsProcessed(512 * state.iterations());
}
BENCHMARK(BM_ScanProducts);

void BM_Layer(benchmark::State& state) {
  const LayerSize size{.d_f = state.range(1), .heads = state.range(2)};
  Workload work(size, {state.range(0)});
  for (auto _ : state) work.RunHere();
  CountFlop(state, work.flop());
}
BENCHMARK(BM_Layer)
    ->ArgNames({"N", "d_f", "H"})
    ->Args({1, 768, 12})
    ->Args({32, 384, 12})
    // Filling rows up to a multiple of four is what equal bits cost: 61 against 64.
    ->Args({61, 768, 12})
    ->Args({64, 768, 12})
    ->Args({128, 768, 12})
    ->Args({512, 768, 12})
    ->Args({2048, 768, 12})
    ->Unit(benchmark::kMillisecond);

void BM_LayerOnThreads(benchmark::State& state) {
  Executor executor({.threads = static_cast<int>(state.range(0))});
  const Workload work({}, {512});
  for (auto _ : state) work.RunOn(executor);
  CountFlop(state, work.flop());
}
BENCHMARK(BM_LayerOnThreads)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void BM_MixedLengths(benchmark::State& state) {
  Workload work({}, MixedLengths(32));
  for (auto _ : state) work.RunHere();
  state.SetItemsProcessed(work.items() * state.iterations());
  CountFlop(state, work.flop());
}
BENCHMARK(BM_MixedLengths)->Unit(benchmark::kMillisecond);

// Tiles without work: what claiming, finishing and waking cost.
class EmptyJob : public Job {
 public:
  explicit EmptyJob(int64_t tiles) : left_(tiles), unfinished_(tiles) {}
  int64_t runnable() const override { return left_; }
  bool Claim(Tile* tile) override {
    if (left_ == 0) return false;
    --left_;
    *tile = {0, 0, 1};
    return true;
  }
  void Run(const Tile&, Workspace&) override {}
  void Fail(const Tile&, const absl::Status&) override {}
  int64_t Finish(const Tile&) override {
    --unfinished_;
    return 0;
  }
  bool exhausted() const override { return unfinished_ == 0; }
  void Cancel(int64_t) override {}

 private:
  int64_t left_, unfinished_;
};

void BM_ClaimATile(benchmark::State& state) {
  constexpr int64_t kTiles = 10000;
  Executor executor({.threads = static_cast<int>(state.range(0))});
  for (auto _ : state) {
    executor.Submit(std::make_shared<EmptyJob>(kTiles), {}, kTiles);
    executor.WaitIdle();
  }
  state.SetItemsProcessed(kTiles * state.iterations());
}
BENCHMARK(BM_ClaimATile)->ArgName("threads")->RangeMultiplier(2)->Range(1, 16)->UseRealTime();

}  // namespace
}  // namespace attend::bench

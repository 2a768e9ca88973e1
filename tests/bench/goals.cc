#include "tests/bench/goals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/onednn_runtime.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/measure.h"
#include "tests/bench/workload.h"

namespace attend::bench {
namespace {

constexpr double kSeconds = 3;  // for each goal

int short_goals = 0;

enum Direction { kAtLeast, kAtMost };

void Report(const std::string& name, const Interval& measured, Direction direction, double goal) {
  const bool ok = direction == kAtLeast ? measured.high >= goal : measured.low <= goal;
  short_goals += !ok;
  printf("%-28s %.3f [%.3f, %.3f] %s%.3f %s\n", name.c_str(), measured.median, measured.low,
         measured.high, direction == kAtLeast ? ">=" : "<=", goal, ok ? "ok" : "short");
  fflush(stdout);
}

// As long as `seconds` by repeating what is short.
double RateOf(Workload& work, double seconds) {
  double spent = 0, flop = 0;
  do {
    spent += work.RunHere();
    flop += work.flop();
  } while (spent < seconds);
  return flop / spent;
}

void SharesOfPeak() {
  const auto share = [](const char* name, const LayerSize& size, int64_t n, double goal) {
    Workload work(size, {n});
    const Interval measured = RepeatPairs(kSeconds, [&] {
      const double before = MeasureFmaPeak();
      const double rate = RateOf(work, 2e-3);
      return rate / ((before + MeasureFmaPeak()) / 2);
    });
    Report(name, measured, kAtLeast, goal);
  };
  share("peak_share_512", {}, 512, 0.90);
  share("peak_share_128", {}, 128, 0.85);
  share("peak_share_2048", {}, 2048, 0.85);
  share("peak_share_32_d384", {.d_f = 384}, 32, 0.75);
}

void TwoThreads() {
  Executor one({.threads = 1}), two({.threads = 2});
  const auto speedup = [&](const char* name, const std::vector<int64_t>& lengths) {
    const Workload work({}, lengths);
    Report(name, RepeatPairs(kSeconds, [&] { return work.RunOn(one) / work.RunOn(two); }), kAtLeast,
           1.9);
  };
  speedup("two_threads_one_512", {512});
  speedup("two_threads_four_512", {512, 512, 512, 512});
}

void Mixed() {
  Workload mixed({}, MixedLengths(32)), even({}, {512});
  Report("mixed_lengths",
         RepeatPairs(kSeconds, [&] { return RateOf(mixed, 0) / RateOf(even, 0.05); }), kAtLeast,
         0.92);
}

void Causal() {
  Workload full({}, {2048}), causal({}, {2048}, true);
  Report("causal_attention_2048",
         RepeatPairs(kSeconds, [&] { return causal.RunAttendTiles() / full.RunAttendTiles(); }),
         kAtMost, 0.6);
  Report("causal_layer_2048",
         RepeatPairs(kSeconds, [&] { return causal.RunHere() / full.RunHere(); }), kAtMost, 0.77);
}

double StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == field + ":" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// What a long sequence takes above its input, its output and T*H*(2*d_k + d_v) floats.
void Memory() {
  constexpr int64_t kN = 65536, kD = 64;
  Workload work({.d_f = kD, .heads = 1, .output = false}, {kN});
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins here
  const double before = StatusBytes("VmRSS");
  work.RunHere();
  const double known = 4.0 * kN * kD /* output */ + 4.0 * kN * 3 * kD;
  const double extra = (StatusBytes("VmHWM") - before - known) / (1 << 20);
  Report("memory_65536_extra_mib", {extra, extra, extra}, kAtMost, 16);
}

// Weighted by 1/t, so that every length counts alike: the largest relative miss of c + aN + bN^2.
double WorstMiss(const std::vector<double>& n, const std::vector<double>& t) {
  std::array<std::array<double, 4>, 3> m = {};
  for (size_t i = 0; i < n.size(); ++i) {
    const std::array<double, 4> row = {1 / t[i], n[i] / t[i], n[i] * n[i] / t[i], 1};
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 4; ++b) m[a][b] += row[a] * row[b];
    }
  }
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      if (a == b) continue;
      const double factor = m[b][a] / m[a][a];
      for (int c = 0; c < 4; ++c) m[b][c] -= factor * m[a][c];
    }
  }
  double worst = 0;
  for (size_t i = 0; i < n.size(); ++i) {
    const double fit =
        m[0][3] / m[0][0] + n[i] * m[1][3] / m[1][1] + n[i] * n[i] * m[2][3] / m[2][2];
    worst = std::max(worst, std::abs(fit / t[i] - 1));
  }
  return worst;
}

void Growth() {
  const LayerSize size = {.d_f = 256, .heads = 4};
  std::vector<double> lengths, times;
  for (int64_t n = 64; n <= 16384; n *= 2) {
    Workload work(size, {n});
    double best = work.RunHere();
    for (const double end = Now() + 1; Now() < end;) best = std::min(best, work.RunHere());
    lengths.push_back(static_cast<double>(n));
    times.push_back(best);
  }
  const double miss = WorstMiss(lengths, times);
  Report("growth_fit_miss", {miss, miss, miss}, kAtMost, 0.10);
  for (int64_t n : {64, 128, 512, 1024}) {
    Workload work({}, {n}), longer({}, {n + 1});
    Report("one_item_more_" + std::to_string(n),
           RepeatPairs(1.5, [&] { return longer.RunHere() / work.RunHere(); }), kAtMost, 1.1);
  }
}

}  // namespace

int CheckGoals() {
  printf("# oneDNN %s, %s, peak %.1f GFLOP/s\n", OneDnnVersion().c_str(), OneDnnIsa().c_str(),
         MeasureFmaPeak() * 1e-9);
  SharesOfPeak();
  TwoThreads();
  Mixed();
  Causal();
  Growth();
  Memory();
  const PrimitiveCacheStats cache = GetPrimitiveCacheStats();
  printf("# primitives: %lld held of at most %lld, %lld made\n", static_cast<long long>(cache.size),
         static_cast<long long>(cache.capacity), static_cast<long long>(cache.misses));
  return short_goals;
}

}  // namespace attend::bench

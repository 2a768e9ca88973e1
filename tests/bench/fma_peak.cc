#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cc"
#include "tests/bench/fma_peak.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tests/bench/measure.h"

HWY_BEFORE_NAMESPACE();
namespace attend::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Ten chains hide the latency of an FMA on every core that has two units for them.
double Peak() {
  constexpr hn::CappedTag<float, 16> d;
  constexpr int kRounds = 300000, kChains = 10;
  // All different, or the compiler makes one chain of ten.
  auto a = hn::Set(d, 1.0f), b = hn::Set(d, 2.0f), c = hn::Set(d, 3.0f), e = hn::Set(d, 4.0f),
       f = hn::Set(d, 5.0f), g = hn::Set(d, 6.0f), h = hn::Set(d, 7.0f), i = hn::Set(d, 8.0f),
       j = hn::Set(d, 9.0f), k = hn::Set(d, 10.0f);
  const auto x = hn::Set(d, 0.999f), y = hn::Set(d, 1e-3f);
  const double start = ThreadNow();
  for (int round = 0; round < kRounds; ++round) {
    a = hn::MulAdd(a, x, y);
    b = hn::MulAdd(b, x, y);
    c = hn::MulAdd(c, x, y);
    e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y);
    g = hn::MulAdd(g, x, y);
    h = hn::MulAdd(h, x, y);
    i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y);
    k = hn::MulAdd(k, x, y);
  }
  const double seconds = ThreadNow() - start;
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(f, g), hn::Add(hn::Add(h, i), hn::Add(j, k))));
  volatile float sink = hn::GetLane(sum);
  (void)sink;
  return 2.0 * kRounds * kChains * hn::Lanes(d) / seconds;
}

}  // namespace HWY_NAMESPACE
}  // namespace attend::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::bench {

HWY_EXPORT(Peak);

double MeasureFmaPeak() { return HWY_DYNAMIC_DISPATCH(Peak)(); }

}  // namespace attend::bench
#endif  // HWY_ONCE

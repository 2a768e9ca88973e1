// Vector functions shared by the simd_*.cc files; compiled once for every target.
#if defined(ATTEND_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_SIMD_MATH_INL_H_
#undef ATTEND_SIMD_MATH_INL_H_
#else
#define ATTEND_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr float kLog2E = 1.44269504f;

// 2^y for y <= 0, within 2 ulp; +0 below 2^-126. y = n + f with f in [-1/2, 1/2]; the polynomial
// of 2^f is the best one of degree 6 (Remez) with 2^0 = 1, 0.04 ulp off.
HWY_INLINE FloatVec PowerOfTwo(FloatTag d, FloatVec y) {
  const hn::RebindToSigned<FloatTag> di;
  // At 1.5 * 2^23 floats are whole: adding rounds, and leaves n + 127 in the lowest bits.
  const auto rounder = hn::Set(d, 12582912.0f + 127.0f);
  y = hn::Max(y, hn::Set(d, -127.0f));  // whose power below has exponent 0: it is zero
  const auto shifted = hn::Add(y, rounder);
  const auto f = hn::Sub(y, hn::Sub(shifted, rounder));
  auto p = hn::Set(d, 1.559467701510541e-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3406643847480061e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.617692976143188e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550310551206981e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022652782876178e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.93147214967885e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::Mul(p, hn::BitCast(d, power));
}

// The largest magnitude so far, as bits, which order like the numbers; infinity and NaN come last.
using BitsVec = hn::Vec<hn::RebindToSigned<FloatTag>>;

HWY_INLINE BitsVec LargerMagnitude(FloatVec x, BitsVec largest) {
  const hn::RebindToSigned<FloatTag> di;
  return hn::Max(hn::And(hn::BitCast(di, x), hn::Set(di, 0x7fffffff)), largest);
}
HWY_INLINE bool IsFinite(BitsVec largest) {
  const hn::RebindToSigned<FloatTag> di;
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7f800000)));
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_SIMD_MATH_INL_H_

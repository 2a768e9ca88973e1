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

// e^x for x <= 0, within 2 ulp; +0 below 2^-126. Range reduction by Cody and Waite, polynomial of
// Cephes' expf (Moshier).
HWY_INLINE FloatVec ExpOfNegative(FloatTag d, FloatVec x) {
  const hn::RebindToSigned<FloatTag> di;
  const auto zero_below = hn::Set(d, -87.3365447f);  // ln 2^-126
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::Add(hn::NearestInt(n), hn::Set(di, 127));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenElseZero(hn::Ge(x, zero_below), hn::Mul(p, power));
}

// Zero times x, gathered: stays zero until an infinity or NaN comes.
HWY_INLINE FloatVec Poison(FloatTag d, FloatVec x, FloatVec poison) {
  return hn::MulAdd(x, hn::Zero(d), poison);
}
HWY_INLINE bool Unpoisoned(FloatTag d, FloatVec poison) {
  return hn::AllTrue(d, hn::Eq(poison, hn::Zero(d)));
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_SIMD_MATH_INL_H_

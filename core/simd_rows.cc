#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd_rows.cc"
#include "core/simd_rows.h"

#include <cmath>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr FloatTag kD;
constexpr hn::RebindToSigned<FloatTag> kInts;

// row[j] = function(row[j]) for a row of whole vectors.
template <typename Function>
HWY_INLINE void ForEach(float* row, int64_t width, Function function) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  for (int64_t j = 0; j < width; j += lanes) {
    hn::StoreU(function(hn::LoadU(kD, row + j), j), kD, row + j);
  }
}

float ExpRowImpl(float* scores, int64_t width, float maximum, float scale) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD)), step = 2 * lanes;
  const auto m = hn::Set(kD, maximum), to_base_2 = hn::Set(kD, scale * kLog2E);
  const auto exp_at = [&](float* at) HWY_ATTR {
    const auto p = PowerOfTwo(kD, hn::Mul(hn::Sub(hn::Load(kD, at), m), to_base_2));
    hn::Store(p, kD, at);
    return p;
  };
  // Two at a time: the polynomial is a long chain.
  auto even = hn::Zero(kD), odd = hn::Zero(kD);
  int64_t j = 0;
  for (; j + step <= width; j += step) {
    even = hn::Add(even, exp_at(scores + j));
    odd = hn::Add(odd, exp_at(scores + j + lanes));
  }
  if (j < width) even = hn::Add(even, exp_at(scores + j));
  return hn::GetLane(hn::SumOfLanes(kD, hn::Add(even, odd)));
}

void SigmoidRowImpl(float* scores, int64_t width) {
  const auto one = hn::Set(kD, 1.0f), to_base_2 = hn::Set(kD, -kLog2E);
  ForEach(scores, width, [&](FloatVec s, int64_t) HWY_ATTR {
    const auto e = PowerOfTwo(kD, hn::Mul(hn::Abs(s), to_base_2));
    return hn::Div(hn::IfThenElse(hn::Ge(s, hn::Zero(kD)), one, e), hn::Add(one, e));
  });
}

void ReluRowImpl(float* scores, int64_t width, float factor) {
  const auto f = hn::Set(kD, factor);
  ForEach(scores, width,
          [&](FloatVec s, int64_t) HWY_ATTR { return hn::Mul(f, hn::Max(s, hn::Zero(kD))); });
}

void NoneRowImpl(float* scores, int64_t width) {
  ForEach(scores, width, [&](FloatVec s, int64_t) HWY_ATTR {
    return hn::IfThenElseZero(hn::Ne(s, hn::Set(kD, -kInfinity)), s);
  });
}

void SparsemaxRowImpl(float* scores, int64_t width, float maximum, float threshold) {
  const auto m = hn::Set(kD, maximum), t = hn::Set(kD, threshold);
  ForEach(scores, width, [&](FloatVec s, int64_t) HWY_ATTR {
    return hn::Max(hn::Sub(hn::Sub(s, m), t), hn::Zero(kD));
  });
}

void AddSparsemaxSupportImpl(const float* scores, int64_t width, float maximum, float threshold,
                             SparsemaxSupport* support) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  const auto m = hn::Set(kD, maximum), t = hn::Set(kD, threshold), one = hn::Set(kD, 1.0f);
  auto sum = hn::Zero(kD), count = hn::Zero(kD);
  for (int64_t j = 0; j < width; j += lanes) {
    const auto z = hn::Sub(hn::Load(kD, scores + j), m);
    const auto above = hn::Gt(z, t);
    sum = hn::Add(sum, hn::IfThenElseZero(above, z));
    count = hn::Add(count, hn::IfThenElseZero(above, one));
  }
  support->sum += hn::GetLane(hn::SumOfLanes(kD, sum));
  support->count += hn::GetLane(hn::SumOfLanes(kD, count));
}

void RescaleFactorsImpl(float* old, const float* now, int64_t width, float scale) {
  const auto to_base_2 = hn::Set(kD, scale * kLog2E);
  ForEach(old, width, [&](FloatVec before, int64_t j) HWY_ATTR {
    const auto after = hn::LoadU(kD, now + j);
    const auto none_yet = hn::Eq(after, hn::Set(kD, -kInfinity));
    return hn::IfThenElse(none_yet, hn::Set(kD, 1.0f),
                          PowerOfTwo(kD, hn::Mul(hn::Sub(before, after), to_base_2)));
  });
}

void MergeRowImpl(float* y, const float* addend, int64_t width, float factor) {
  const auto f = hn::Set(kD, factor);
  ForEach(y, width, [&](FloatVec v, int64_t j) HWY_ATTR {
    return hn::MulAdd(v, f, hn::LoadU(kD, addend + j));
  });
}

bool FinishRowImpl(float* y, int64_t width, float factor) {
  const auto f = hn::Set(kD, factor);
  auto magnitude = hn::Zero(kInts);
  ForEach(y, width, [&](FloatVec v, int64_t) HWY_ATTR {
    v = hn::Add(hn::Mul(v, f), hn::Zero(kD));
    magnitude = LargerMagnitude(v, magnitude);
    return v;
  });
  return IsFinite(magnitude);
}

bool AddBiasRowImpl(float* y, const float* bias, int64_t width) {
  auto magnitude = hn::Zero(kInts);
  ForEach(y, width, [&](FloatVec v, int64_t j) HWY_ATTR {
    v = hn::Add(v, hn::LoadU(kD, bias + j));
    magnitude = LargerMagnitude(v, magnitude);
    return v;
  });
  return IsFinite(magnitude);
}

#if HWY_TARGET == HWY_SCALAR
void TransposeRowsImpl(const float* from, int64_t stride, int64_t lanes, int64_t columns,
                       float* to) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < lanes; ++r) to[c * lanes + r] = from[r * stride + c];
  }
}
#else
// Rows are gathered four by four, in 128-bit vectors that every machine has.
void TransposeRowsImpl(const float* from, int64_t stride, int64_t lanes, int64_t columns,
                       float* to) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<uint64_t, 2> pairs;
  const auto join_lower = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto join_upper = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  for (int64_t r = 0; r < lanes; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const float* at = from + r * stride + c;
      const auto a = hn::LoadU(d, at), b = hn::LoadU(d, at + stride);
      const auto e = hn::LoadU(d, at + 2 * stride), f = hn::LoadU(d, at + 3 * stride);
      const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
      const auto ef_low = hn::InterleaveLower(d, e, f), ef_high = hn::InterleaveUpper(d, e, f);
      float* out = to + c * lanes + r;
      hn::StoreU(join_lower(ab_low, ef_low), d, out);
      hn::StoreU(join_upper(ab_low, ef_low), d, out + lanes);
      hn::StoreU(join_lower(ab_high, ef_high), d, out + 2 * lanes);
      hn::StoreU(join_upper(ab_high, ef_high), d, out + 3 * lanes);
    }
  }
}
#endif

bool AllFiniteImpl(const float* values, int64_t size) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  auto magnitude = hn::Zero(kInts);
  int64_t j = 0;
  for (; j + lanes <= size; j += lanes) {
    magnitude = LargerMagnitude(hn::LoadU(kD, values + j), magnitude);
  }
  bool finite = IsFinite(magnitude);
  for (; j < size; ++j) finite = finite && std::isfinite(values[j]);
  return finite;
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(ExpRowImpl);
HWY_EXPORT(SigmoidRowImpl);
HWY_EXPORT(ReluRowImpl);
HWY_EXPORT(NoneRowImpl);
HWY_EXPORT(SparsemaxRowImpl);
HWY_EXPORT(AddSparsemaxSupportImpl);
HWY_EXPORT(RescaleFactorsImpl);
HWY_EXPORT(MergeRowImpl);
HWY_EXPORT(FinishRowImpl);
HWY_EXPORT(AddBiasRowImpl);
HWY_EXPORT(TransposeRowsImpl);
HWY_EXPORT(AllFiniteImpl);

void LimitSimdLanes([[maybe_unused]] int64_t lanes) {
#if HWY_ARCH_X86
  // Targets are bits, the better the lower.
  if (lanes < 16) hwy::DisableTargets(HWY_AVX2 - 1);
#endif
}

float ExpRow(float* scores, int64_t width, float maximum, float scale) {
  return HWY_DYNAMIC_DISPATCH(ExpRowImpl)(scores, width, maximum, scale);
}
void SigmoidRow(float* scores, int64_t width) {
  HWY_DYNAMIC_DISPATCH(SigmoidRowImpl)(scores, width);
}
void ReluRow(float* scores, int64_t width, float factor) {
  HWY_DYNAMIC_DISPATCH(ReluRowImpl)(scores, width, factor);
}
void NoneRow(float* scores, int64_t width) { HWY_DYNAMIC_DISPATCH(NoneRowImpl)(scores, width); }
void SparsemaxRow(float* scores, int64_t width, float maximum, float threshold) {
  HWY_DYNAMIC_DISPATCH(SparsemaxRowImpl)(scores, width, maximum, threshold);
}
void AddSparsemaxSupport(const float* scores, int64_t width, float maximum, float threshold,
                         SparsemaxSupport* support) {
  HWY_DYNAMIC_DISPATCH(AddSparsemaxSupportImpl)(scores, width, maximum, threshold, support);
}
void RescaleFactors(float* old, const float* now, int64_t width, float scale) {
  HWY_DYNAMIC_DISPATCH(RescaleFactorsImpl)(old, now, width, scale);
}
void MergeRow(float* y, const float* addend, int64_t width, float factor) {
  HWY_DYNAMIC_DISPATCH(MergeRowImpl)(y, addend, width, factor);
}
bool FinishRow(float* y, int64_t width, float factor) {
  return HWY_DYNAMIC_DISPATCH(FinishRowImpl)(y, width, factor);
}
bool AddBiasRow(float* y, const float* bias, int64_t width) {
  return HWY_DYNAMIC_DISPATCH(AddBiasRowImpl)(y, bias, width);
}
void TransposeRows(const float* from, int64_t stride, int64_t lanes, int64_t columns, float* to) {
  HWY_DYNAMIC_DISPATCH(TransposeRowsImpl)(from, stride, lanes, columns, to);
}
bool AllFinite(const float* values, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteImpl)(values, size);
}

}  // namespace attend
#endif  // HWY_ONCE

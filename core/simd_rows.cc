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

bool FinishRowImpl(const float* y, int64_t width, float factor, float* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  const auto f = hn::Set(kD, factor);
  auto magnitude = hn::Zero(kInts);
  for (int64_t j = 0; j < width; j += lanes) {
    const auto v = hn::Add(hn::Mul(hn::LoadU(kD, y + j), f), hn::Zero(kD));
    magnitude = LargerMagnitude(v, magnitude);
    hn::StoreU(v, kD, to + j);
  }
  return IsFinite(magnitude);
}

bool AddBiasImpl(MatrixView<const float> from, const float* bias, MatrixView<float> to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  auto magnitude = hn::Zero(kInts);
  bool finite = true;
  for (int64_t r = 0; r < from.rows; ++r) {
    const float* x = from.row(r);
    float* y = to.row(r);
    int64_t c = 0;
    for (; c + lanes <= from.columns; c += lanes) {
      const auto sum = hn::Add(hn::LoadU(kD, x + c), hn::LoadU(kD, bias + c));
      magnitude = LargerMagnitude(sum, magnitude);
      hn::StoreU(sum, kD, y + c);
    }
    for (; c < from.columns; ++c) {
      y[c] = x[c] + bias[c];
      finite = finite && std::isfinite(y[c]);
    }
  }
  return finite && IsFinite(magnitude);
}

#if HWY_TARGET == HWY_SCALAR
bool AddBiasTransposedImpl(MatrixView<const float> from, const float* bias, float* to) {
  bool finite = true;
  for (int64_t c = 0; c < from.columns; ++c) {
    for (int64_t r = 0; r < from.rows; ++r) {
      to[c * from.rows + r] = from.row(r)[c] + bias[c];
      finite = finite && std::isfinite(to[c * from.rows + r]);
    }
  }
  return finite;
}
#else
// Rows are gathered four by four, in 128-bit vectors that every machine has.
bool AddBiasTransposedImpl(MatrixView<const float> from, const float* bias, float* to) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<uint64_t, 2> pairs;
  const auto join_lower = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto join_upper = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const hn::FixedTag<int32_t, 4> bits;
  auto magnitude = hn::Zero(bits);
  const auto load = [&](const float* at, auto added) HWY_ATTR {
    const auto sum = hn::Add(hn::LoadU(d, at), added);
    magnitude = hn::Max(hn::And(hn::BitCast(bits, sum), hn::Set(bits, 0x7fffffff)), magnitude);
    return sum;
  };
  for (int64_t r = 0; r < from.rows; r += 4) {
    for (int64_t c = 0; c < from.columns; c += 4) {
      const auto added = hn::LoadU(d, bias + c);
      const auto a = load(from.row(r) + c, added), b = load(from.row(r + 1) + c, added);
      const auto e = load(from.row(r + 2) + c, added), f = load(from.row(r + 3) + c, added);
      const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
      const auto ef_low = hn::InterleaveLower(d, e, f), ef_high = hn::InterleaveUpper(d, e, f);
      float* out = to + c * from.rows + r;
      hn::StoreU(join_lower(ab_low, ef_low), d, out);
      hn::StoreU(join_upper(ab_low, ef_low), d, out + from.rows);
      hn::StoreU(join_lower(ab_high, ef_high), d, out + 2 * from.rows);
      hn::StoreU(join_upper(ab_high, ef_high), d, out + 3 * from.rows);
    }
  }
  return hn::AllTrue(bits, hn::Lt(magnitude, hn::Set(bits, 0x7f800000)));
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

HWY_EXPORT(SigmoidRowImpl);
HWY_EXPORT(ReluRowImpl);
HWY_EXPORT(NoneRowImpl);
HWY_EXPORT(SparsemaxRowImpl);
HWY_EXPORT(AddSparsemaxSupportImpl);
HWY_EXPORT(RescaleFactorsImpl);
HWY_EXPORT(MergeRowImpl);
HWY_EXPORT(FinishRowImpl);
HWY_EXPORT(AddBiasImpl);
HWY_EXPORT(AddBiasTransposedImpl);
HWY_EXPORT(AllFiniteImpl);

void LimitSimdLanes([[maybe_unused]] int64_t lanes) {
#if HWY_ARCH_X86
  // Targets are bits, the better the lower.
  if (lanes < 16) hwy::DisableTargets(HWY_AVX2 - 1);
#endif
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
bool FinishRow(const float* y, int64_t width, float factor, float* to) {
  return HWY_DYNAMIC_DISPATCH(FinishRowImpl)(y, width, factor, to);
}
bool AddBias(MatrixView<const float> from, const float* bias, MatrixView<float> to) {
  return HWY_DYNAMIC_DISPATCH(AddBiasImpl)(from, bias, to);
}
bool AddBiasTransposed(MatrixView<const float> from, const float* bias, float* to) {
  return HWY_DYNAMIC_DISPATCH(AddBiasTransposedImpl)(from, bias, to);
}
bool AllFinite(const float* values, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteImpl)(values, size);
}

}  // namespace attend
#endif  // HWY_ONCE

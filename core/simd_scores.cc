#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd_scores.cc"
#include <algorithm>
#include <array>
#include <cstring>

#include "core/simd_rows.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr FloatTag kD;
constexpr hn::Rebind<uint8_t, FloatTag> kBytes;
constexpr hn::RebindToSigned<FloatTag> kInts;

// The inputs of one vector of pairs that do not come from the product.
struct PairInputs {
  const float* bias;
  const uint8_t* mask;
  const uint8_t* key_mask;
};

struct Accumulators {
  FloatVec maximum;
  BitsVec magnitude;
};

HWY_INLINE hn::Mask<FloatTag> IsSet(const uint8_t* mask) {
  const auto wide = hn::PromoteTo(kInts, hn::LoadU(kBytes, mask));
  return hn::RebindMask(kD, hn::Ne(wide, hn::Zero(kInts)));
}

template <bool kBias, bool kMask, bool kKeyMask>
HWY_INLINE void FinishVector(float* scores, hn::Mask<FloatTag> allowed, FloatVec scale,
                             const PairInputs& in, Accumulators& all) {
  auto s = hn::Mul(hn::Load(kD, scores), scale);
  if constexpr (kBias) {
    const auto bias = hn::LoadU(kD, in.bias);
    allowed = hn::And(allowed, hn::Ne(bias, hn::Set(kD, -kInfinity)));
    s = hn::Add(s, bias);
  }
  if constexpr (kMask) allowed = hn::And(allowed, IsSet(in.mask));
  if constexpr (kKeyMask) allowed = hn::And(allowed, IsSet(in.key_mask));
  all.magnitude = LargerMagnitude(hn::IfThenElseZero(allowed, s), all.magnitude);
  s = hn::IfThenElse(allowed, s, hn::Set(kD, -kInfinity));
  all.maximum = hn::Max(all.maximum, s);
  hn::Store(s, kD, scores);
}

// The last vector reads its inputs from copies, for the caller's rows end at `limit`.
template <typename T>
HWY_INLINE const T* CopyTail(const T* row, int64_t first, int64_t count, T* copy) {
  if (row == nullptr) return nullptr;
  std::memcpy(copy, row + first, count * sizeof(T));
  return copy;
}

template <bool kBias, bool kMask, bool kKeyMask>
ScoreRowResult Finish(const ScoreRow& row) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  const auto scale = hn::Set(kD, row.scale);
  Accumulators all{hn::Set(kD, -kInfinity), hn::Zero(kInts)};
  const auto every = hn::FirstN(kD, hn::Lanes(kD));
  int64_t j = 0;
  for (; j + lanes <= row.limit; j += lanes) {
    const PairInputs in{row.bias + (kBias ? j : 0), row.mask + (kMask ? j : 0),
                        row.key_mask + (kKeyMask ? j : 0)};
    FinishVector<kBias, kMask, kKeyMask>(row.scores + j, every, scale, in, all);
  }
  if (j < row.limit) {
    const int64_t rest = row.limit - j;
    HWY_ALIGN std::array<float, 16> bias{};
    std::array<uint8_t, 16> mask{}, key_mask{};
    const PairInputs in{CopyTail(row.bias, j, rest, bias.data()),
                        CopyTail(row.mask, j, rest, mask.data()),
                        CopyTail(row.key_mask, j, rest, key_mask.data())};
    FinishVector<kBias, kMask, kKeyMask>(row.scores + j, hn::FirstN(kD, static_cast<size_t>(rest)),
                                         scale, in, all);
    j += lanes;
  }
  for (; j < row.width; j += lanes) hn::Store(hn::Set(kD, -kInfinity), kD, row.scores + j);
  return {hn::GetLane(hn::MaxOfLanes(kD, all.maximum)), IsFinite(all.magnitude)};
}

ScoreRowResult ScanProductsImpl(float* products, int64_t width, int64_t limit) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kD));
  const auto hidden = hn::Set(kD, -kInfinity);
  Accumulators all{hidden, hn::Zero(kInts)};
  int64_t j = 0;
  for (; j + lanes <= limit; j += lanes) {
    const auto s = hn::Load(kD, products + j);
    all.magnitude = LargerMagnitude(s, all.magnitude);
    all.maximum = hn::Max(all.maximum, s);
  }
  if (j < limit) {
    const auto allowed = hn::FirstN(kD, static_cast<size_t>(limit - j));
    const auto s = hn::Load(kD, products + j);
    const auto shown = hn::IfThenElse(allowed, s, hidden);
    all.magnitude = LargerMagnitude(hn::IfThenElseZero(allowed, s), all.magnitude);
    all.maximum = hn::Max(all.maximum, shown);
    hn::Store(shown, kD, products + j);
    j += lanes;
  }
  for (; j < width; j += lanes) hn::Store(hidden, kD, products + j);
  return {hn::GetLane(hn::MaxOfLanes(kD, all.maximum)), IsFinite(all.magnitude)};
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

SoftmaxRowResult SoftmaxProductsImpl(float* products, int64_t width, int64_t limit, float maximum,
                                     float scale) {
  const ScoreRowResult row = ScanProductsImpl(products, width, limit);
  maximum = std::max(maximum, row.maximum);
  if (maximum == -kInfinity) {
    std::fill_n(products, width, 0.0f);
    return {maximum, 0, row.finite};
  }
  return {maximum, ExpRowImpl(products, width, maximum, scale), row.finite};
}

ScoreRowResult FinishScoresImpl(const ScoreRow& row) {
  const bool mask = row.mask != nullptr, key_mask = row.key_mask != nullptr;
  if (row.bias != nullptr) {
    if (mask) return key_mask ? Finish<true, true, true>(row) : Finish<true, true, false>(row);
    return key_mask ? Finish<true, false, true>(row) : Finish<true, false, false>(row);
  }
  if (mask) return key_mask ? Finish<false, true, true>(row) : Finish<false, true, false>(row);
  return key_mask ? Finish<false, false, true>(row) : Finish<false, false, false>(row);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(FinishScoresImpl);
HWY_EXPORT(ScanProductsImpl);
HWY_EXPORT(ExpRowImpl);
HWY_EXPORT(SoftmaxProductsImpl);

ScoreRowResult FinishScores(const ScoreRow& row) {
  return HWY_DYNAMIC_DISPATCH(FinishScoresImpl)(row);
}

ScoreRowResult ScanProducts(float* products, int64_t width, int64_t limit) {
  return HWY_DYNAMIC_DISPATCH(ScanProductsImpl)(products, width, limit);
}

float ExpRow(float* scores, int64_t width, float maximum, float scale) {
  return HWY_DYNAMIC_DISPATCH(ExpRowImpl)(scores, width, maximum, scale);
}

SoftmaxRowResult SoftmaxProducts(float* products, int64_t width, int64_t limit, float maximum,
                                 float scale) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxProductsImpl)(products, width, limit, maximum, scale);
}

}  // namespace attend
#endif  // HWY_ONCE

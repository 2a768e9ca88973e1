// Equal bits, not equal numbers: -0 differs from +0.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "core/sequence.h"

namespace attend {

inline testing::AssertionResult SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " numbers against " << b.size();
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return testing::AssertionFailure() << "number " << i << ": " << a[i] << " against " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

inline testing::AssertionResult SameBits(const FloatBuffer& a, const FloatBuffer& b) {
  return SameBits(a.span(), b.span());
}

}  // namespace attend

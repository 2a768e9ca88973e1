// The histograms' buckets.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace attend {

// Upper bounds from `first` to `last` at least, `per_decade` to each factor of ten, equally far
// apart in ratio, so that a quantile's relative error is the same everywhere.
inline std::vector<double> LogBuckets(double first, double last, int per_decade) {
  std::vector<double> bounds;
  for (int i = 0; bounds.empty() || bounds.back() < last * 0.999; ++i) {
    // Three digits, as they are written: the bounds are label values that people read.
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.3g",
                  first * std::pow(10.0, static_cast<double>(i) / per_decade));
    bounds.push_back(std::strtod(digits, nullptr));
  }
  return bounds;
}

// 50 us (an empty call on an idle core) to 60 s (twice the grace period), five a decade: a quantile
// interpolated inside a bucket is off by a quarter at most.
inline std::vector<double> SecondsBuckets() { return LogBuckets(50e-6, 60, 5); }
// 1, 2, 4 ... last.
inline std::vector<double> DoublingBuckets(double last) {
  std::vector<double> bounds;
  for (double bound = 1; bound <= last; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace attend

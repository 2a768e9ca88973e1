#include "tests/bench/measure.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace attend::bench {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ThreadNow() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Interval MedianOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  const double reach = 0.98 * std::sqrt(n);  // half of 1.96 binomial deviations
  const auto at = [&](double rank) {
    return samples[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  return {at(n / 2), at(std::floor(n / 2 - reach)), at(std::ceil(n / 2 + reach))};
}

Interval RepeatPairs(double seconds, const std::function<double()>& pair) {
  pair();
  std::vector<double> ratios;
  for (const double end = Now() + seconds; ratios.size() < 9 || Now() < end;) {
    ratios.push_back(pair());
  }
  return MedianOf(std::move(ratios));
}

}  // namespace attend::bench

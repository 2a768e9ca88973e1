// Measuring on machines that others use too: what is compared is run in turns, and the answer is a
// median with its confidence interval.
#pragma once

#include <functional>
#include <vector>

namespace attend::bench {

double Now();  // seconds, monotonic
// Seconds that the calling thread has computed: what others did on its core in between is left out.
double ThreadNow();

struct Interval {
  double median = 0, low = 0, high = 0;  // 95 %, by order statistics
};
Interval MedianOf(std::vector<double> samples);

// Calls `pair` for about `seconds`, at least nine times; each call gives one ratio.
Interval RepeatPairs(double seconds, const std::function<double()>& pair);

}  // namespace attend::bench

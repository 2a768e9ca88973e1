// Finds the highest rate that a server sustains, by trying rates.
#pragma once

#include <optional>

namespace attend::client {

// Doubles the rate until one fails, then halves the interval until it is known to `precision`.
class KneeSearch {
 public:
  explicit KneeSearch(double first_rate, double precision = 0.05)
      : next_(first_rate), precision_(precision) {}

  // Nothing when the search is over.
  std::optional<double> NextRate() const;
  // What came of NextRate().
  void Report(bool sustained);
  // The highest rate that was sustained; 0 when none was.
  double best() const { return best_; }

 private:
  double next_;
  const double precision_;
  double best_ = 0;
  std::optional<double> failed_;
};

}  // namespace attend::client

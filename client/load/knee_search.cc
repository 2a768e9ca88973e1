#include "client/load/knee_search.h"

namespace attend::client {
namespace {

constexpr double kLowestRate = 0.1, kHighestRate = 1e7;

}  // namespace

std::optional<double> KneeSearch::NextRate() const {
  if (next_ < kLowestRate || next_ > kHighestRate) return std::nullopt;
  if (failed_ && *failed_ - best_ <= precision_ * *failed_) return std::nullopt;
  return next_;
}

void KneeSearch::Report(bool sustained) {
  if (sustained) {
    best_ = next_;
  } else {
    failed_ = next_;
  }
  if (!failed_) {
    next_ = 2 * best_;
  } else {
    // While nothing was sustained the rate falls fast: the first guess was far off.
    next_ = best_ > 0 ? (best_ + *failed_) / 2 : *failed_ / 4;
  }
}

}  // namespace attend::client

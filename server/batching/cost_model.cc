#include "server/batching/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attend {
namespace {

// Of a machine that nothing is known about.
constexpr double kGuessedFlopPerSecond = 30e9;
constexpr double kGuessedOverhead = 20e-6;

using Terms = std::array<double, 3>;  // c, a, b

Terms Powers(int64_t num_items) {
  const double n = static_cast<double>(num_items);
  return {1, n, n * n};
}

// Minimises sum_k ((x(N_k) . terms) / t_k - 1)^2 over the terms that `used` allows, by Gauss-Jordan
// on the normal equations; columns are scaled to 1 at the largest N, so that they stay well
// conditioned. False when the samples do not determine them.
bool Solve(std::span<const CostSample> samples, const std::array<bool, 3>& used, Terms& terms) {
  int64_t largest = 1;
  for (const CostSample& sample : samples) largest = std::max(largest, sample.num_items);
  const Terms scale = Powers(largest);
  double m[3][4] = {};
  for (const CostSample& sample : samples) {
    const Terms x = Powers(sample.num_items);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        m[i][j] += x[i] / scale[i] * x[j] / scale[j] / (sample.seconds * sample.seconds);
      }
      m[i][3] += x[i] / scale[i] / sample.seconds;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (used[i]) continue;
    for (int j = 0; j < 4; ++j) m[i][j] = m[j % 3][i] = 0;
    m[i][i] = 1;
    m[i][3] = 0;
  }
  for (int i = 0; i < 3; ++i) {
    if (!(m[i][i] > 1e-12)) return false;
    for (int r = 0; r < 3; ++r) {
      const double factor = m[r][i] / m[i][i];
      for (int j = 0; r != i && j < 4; ++j) m[r][j] -= factor * m[i][j];
    }
  }
  for (int i = 0; i < 3; ++i) terms[i] = m[i][3] / m[i][i] / scale[i];
  return true;
}

double SquaredError(std::span<const CostSample> samples, const CostCurve& curve) {
  double sum = 0;
  for (const CostSample& sample : samples) {
    sum += std::pow(curve.Seconds(sample.num_items) / sample.seconds - 1, 2);
  }
  return sum;
}

}  // namespace

double CostCurve::Seconds(int64_t num_items) const {
  const double n = static_cast<double>(num_items);
  return c + n * (a + n * b);
}

CostCurve FitCostCurve(std::span<const CostSample> samples) {
  CostCurve best;
  double best_error = std::numeric_limits<double>::infinity();
  // Seven subsets of terms: the best fit without negative terms is the plain fit of one of them.
  for (int subset = 1; subset < 8; ++subset) {
    const std::array<bool, 3> used = {(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0};
    const auto count = static_cast<size_t>(std::count(used.begin(), used.end(), true));
    Terms t{};
    if (count > samples.size() || !Solve(samples, used, t)) continue;
    if (*std::min_element(t.begin(), t.end()) < 0) continue;
    const CostCurve curve{t[0], t[1], t[2]};
    const double error = SquaredError(samples, curve);
    if (error < best_error) {
      best = curve;
      best_error = error;
    }
  }
  return best;
}

double CostModel::Seconds(const Model& model, int64_t num_items, bool causal) const {
  const double flop = model.Cost(num_items, causal);
  MutexLock lock(&mutex_);
  if (!calibrated_) return correction_ * (kGuessedOverhead + flop / kGuessedFlopPerSecond);
  const double full = model.Cost(num_items, false);
  const double share = full > 0 ? flop / full : 1;
  return correction_ * (curve_.c + share * (curve_.Seconds(num_items) - curve_.c));
}

void CostModel::Learn(double predicted, double measured) {
  if (!(predicted > 0) || !(measured > 0)) return;
  // One batch that a busy machine held up does not count for more than a factor of two; about
  // twenty batches outweigh what was known before.
  constexpr double kMemory = 0.95;
  MutexLock lock(&mutex_);
  const double error = std::clamp(std::log(measured / predicted), -std::log(2.0), std::log(2.0));
  correction_ *= std::exp((1 - kMemory) * error);
}

CostCurve CostModel::curve() const {
  MutexLock lock(&mutex_);
  return {correction_ * curve_.c, correction_ * curve_.a, correction_ * curve_.b};
}

}  // namespace attend

#include "server/batching/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attend {
namespace {

using Vector = std::array<double, 3>;  // of c, a, b

Vector Powers(int64_t num_items) {
  const double n = static_cast<double>(num_items);
  return {1, n, n * n};
}

// Minimises sum_k ((x(N_k) . solution) / t_k - 1)^2 over the terms that are `used`, by Gauss-Jordan
// on the normal equations; columns are scaled to 1 at the largest N, so that they stay well
// conditioned. False when the samples do not determine them.
bool Solve(std::span<const CostSample> samples, const std::array<bool, 3>& used, Vector& solution) {
  int64_t largest = 1;
  for (const CostSample& sample : samples) largest = std::max(largest, sample.num_items);
  const Vector scale = Powers(largest);
  double m[3][4] = {};
  for (const CostSample& sample : samples) {
    const Vector x = Powers(sample.num_items);
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
  for (int i = 0; i < 3; ++i) solution[i] = m[i][3] / m[i][i] / scale[i];
  return true;
}

double SquaredError(std::span<const CostSample> samples, const CostCurve& curve) {
  double sum = 0;
  for (const CostSample& sample : samples) {
    const Vector x = Powers(sample.num_items);
    sum += std::pow(curve.Seconds({x[0], x[1], x[2]}) / sample.seconds - 1, 2);
  }
  return sum;
}

}  // namespace

CostTerms& CostTerms::operator+=(const CostTerms& other) {
  sequences += other.sequences;
  items += other.items;
  squares += other.squares;
  return *this;
}

CostTerms TermsOf(const Model& model, int64_t num_items, bool causal) {
  const double full = model.Cost(num_items, false);
  const double share = causal && full > 0 ? model.Cost(num_items, true) / full : 1;
  const double n = static_cast<double>(num_items);
  return {1, share * n, share * n * n};
}

CostCurve FitCostCurve(std::span<const CostSample> samples) {
  CostCurve best;
  double best_error = std::numeric_limits<double>::infinity();
  // Seven subsets of terms: the best fit without negative terms is the plain fit of one of them.
  for (int subset = 1; subset < 8; ++subset) {
    const std::array<bool, 3> used = {(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0};
    const auto count = static_cast<size_t>(std::count(used.begin(), used.end(), true));
    Vector t{};
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

CostCurve GuessCostCurve(const Model& model) {
  constexpr double kFlopPerSecond = 30e9;
  constexpr double kOverhead = 20e-6;
  std::vector<CostSample> samples;
  for (const int64_t n : {1, 64, 512, 4096}) {
    samples.push_back({n, kOverhead + model.Cost(n, false) / kFlopPerSecond});
  }
  return FitCostCurve(samples);
}

CostCurve CostModel::curve(const Model& model) {
  MutexLock lock(&mutex_);
  if (!curve_) curve_ = GuessCostCurve(model);
  return *curve_;
}

void CostModel::Learn(const Model& model, const CostTerms& terms, double measured) {
  CostCurve curve = this->curve(model);
  const double predicted = curve.Seconds(terms);
  if (!(predicted > 0) || !(measured > 0)) return;
  // About twenty batches outweigh what was known before; one that the machine held up counts for no
  // more than a factor of two.
  constexpr double kPace = 0.05;
  const double error = std::clamp(std::log(measured / predicted), -std::log(2.0), std::log(2.0));
  const auto move = [&](double& coefficient, double term) {
    coefficient *= std::exp(kPace * error * (coefficient * term / predicted));
  };
  move(curve.c, terms.sequences);
  move(curve.a, terms.items);
  move(curve.b, terms.squares);
  MutexLock lock(&mutex_);
  curve_ = curve;
}

}  // namespace attend

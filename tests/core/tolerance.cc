#include "tests/core/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attend {
namespace {

constexpr double kU = 0x1p-24, kU2 = kU * kU;

// Of every output of W x + b.
std::vector<double> LinearVariance(const SequenceInput& input, const FloatBuffer& weight,
                                   const FloatBuffer& bias, int64_t outputs) {
  const int64_t n = input.num_items(), inputs = input.items.columns;
  std::vector<double> variance(n * outputs);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0 : bias.data()[o], squares = sum * sum;
      for (int64_t f = 0; f < inputs; ++f) {
        const double term = double{input.items.row(i)[f]} * weight.data()[o * inputs + f];
        sum += term;
        squares += term * term;
      }
      variance[i * outputs + o] = kU2 * (inputs + !bias.empty()) * (squares + sum * sum);
    }
  }
  return variance;
}

// One row of one head over the items in A(i).
struct Row {
  std::vector<double> s, d, p;  // scores, D, weights

  int64_t n() const { return static_cast<int64_t>(s.size()); }
};

double RelativeRounding(int64_t n) { return (n > 36 ? 6 * std::sqrt(n) : n + 20) * kU; }

// 1 / (1 + sum over k != j of e^(s_k + sign D_k - s_j + sign D_j)) for every j.
std::vector<double> EndsOfRange(const std::vector<double>& s, const std::vector<double>& d,
                                double sign) {
  std::vector<double> shifted, ends;
  for (size_t k = 0; k < s.size(); ++k) shifted.push_back(s[k] + sign * d[k]);
  const double m = *std::max_element(shifted.begin(), shifted.end());
  double sum = 0;
  for (double x : shifted) sum += std::exp(x - m);
  for (size_t j = 0; j < s.size(); ++j) {
    const double others = std::max(sum - std::exp(shifted[j] - m), 0.0);
    ends.push_back(1 / (1 + others * std::exp(m - s[j] + sign * d[j])));
  }
  return ends;
}

std::vector<double> SoftmaxBounds(const Row& row, bool one) {
  std::vector<double> s = row.s, d = row.d, bounds;
  if (one) {
    s.push_back(0);
    d.push_back(0);
  }
  const std::vector<double> low = EndsOfRange(s, d, 1), high = EndsOfRange(s, d, -1);
  for (int64_t j = 0; j < row.n(); ++j) {
    const double p = row.p[j], distance = std::max(p - low[j], high[j] - p);
    bounds.push_back(distance + RelativeRounding(row.n()) * p + 0x1p-126);
  }
  return bounds;
}

std::vector<double> WeightBounds(Normalizer normalizer, const Row& row) {
  if (normalizer == Normalizer::kSoftmax) return SoftmaxBounds(row, false);
  if (normalizer == Normalizer::kSoftmaxOne) return SoftmaxBounds(row, true);
  const double d_max = *std::max_element(row.d.begin(), row.d.end());
  const double m = *std::max_element(row.s.begin(), row.s.end());
  const auto sigmoid = [](double s) { return 1 / (1 + std::exp(-s)); };
  std::vector<double> bounds;
  for (int64_t j = 0; j < row.n(); ++j) {
    const double s = row.s[j], d = row.d[j], p = row.p[j];
    switch (normalizer) {
      case Normalizer::kSigmoid:
        bounds.push_back(std::max(p - sigmoid(s - d), sigmoid(s + d) - p) +
                         RelativeRounding(1) * p + 0x1p-126);
        break;
      case Normalizer::kRelu:
        bounds.push_back((d + 2 * kU * std::abs(s)) / row.n());
        break;
      case Normalizer::kSparsemax:
        bounds.push_back(s >= m - 1 - 2 * d_max ? 2 * d_max + (row.n() + 4) * kU : 0);
        break;
      default:
        bounds.push_back(d);
    }
  }
  return bounds;
}

class BoundsComputer {
 public:
  BoundsComputer(const AttentionConfig& c, const AttentionWeights& w, const SequenceInput& input,
                 const Reference& truth)
      : c_(c), w_(w), input_(input), truth_(truth), n_(truth.n) {
    const int64_t keys = c.num_key_heads * c.d_k, values = c.num_key_heads * c.d_v;
    var_q_ = LinearVariance(input, w.query_weight, w.query_bias, c.num_heads * c.d_k);
    var_k_ = LinearVariance(input, w.key_weight, w.key_bias, keys);
    var_v_ = LinearVariance(input, w.value_weight, w.value_bias, values);
  }

  Bounds Compute() {
    bounds_.scores.assign(c_.num_heads * n_ * n_, 0);
    bounds_.weights.assign(c_.num_heads * n_ * n_, 0);
    var_y_.assign(n_ * c_.num_heads * c_.d_v, 0);
    for (int64_t h = 0; h < c_.num_heads; ++h) {
      for (int64_t i = 0; i < n_; ++i) ComputeRow(h, i);
    }
    w_.output_weight.empty() ? TakeVarianceOfY() : ProjectVarianceOfY();
    return std::move(bounds_);
  }

 private:
  double ScoreDeviation(int64_t h, int64_t i, int64_t j) const {
    const int64_t g = h / (c_.num_heads / c_.num_key_heads);
    double sum = 0, squares = 0, inherited = 0;
    for (int64_t d = 0; d < c_.d_k; ++d) {
      const int64_t at_q = (i * c_.num_heads + h) * c_.d_k + d;
      const int64_t at_k = (j * c_.num_key_heads + g) * c_.d_k + d;
      const double q = truth_.q[at_q], k = truth_.k[at_k];
      inherited += var_q_[at_q] * k * k + q * q * var_k_[at_k];
      sum += q * k;
      squares += q * k * q * k;
    }
    const double dot = kU2 * (c_.d_k + 2) * (squares + sum * sum);
    const double s = truth_.scores[(h * n_ + i) * n_ + j];
    const double bias = input_.attention_bias.empty() ? 0 : input_.attention_bias.row(i)[j];
    const double scale2 = double{c_.scale} * c_.scale;
    return 8 *
           std::sqrt(scale2 * (inherited + dot) + 4 * kU2 * s * s + kU2 * (bias * bias + s * s));
  }

  void ComputeRow(int64_t h, int64_t i) {
    Row row;
    std::vector<int64_t> columns;
    const int64_t first = (h * n_ + i) * n_;
    for (int64_t j = 0; j < n_; ++j) {
      if (!truth_.allowed[i * n_ + j]) continue;
      columns.push_back(j);
      row.s.push_back(truth_.scores[first + j]);
      row.d.push_back(ScoreDeviation(h, i, j));
      row.p.push_back(truth_.weights[first + j]);
      bounds_.scores[first + j] = row.d.back();
    }
    if (columns.empty()) return;
    const std::vector<double> e = WeightBounds(c_.normalizer, row);
    for (size_t a = 0; a < columns.size(); ++a) bounds_.weights[first + columns[a]] = e[a];
    AddVarianceOfY(h, i, columns, row, e);
  }

  void AddVarianceOfY(int64_t h, int64_t i, const std::vector<int64_t>& columns, const Row& row,
                      const std::vector<double>& e) {
    const int64_t g = h / (c_.num_heads / c_.num_key_heads);
    const bool coherent = *std::max_element(row.d.begin(), row.d.end()) > 0.01;
    for (int64_t d = 0; d < c_.d_v; ++d) {
      double squares = 0, absolute = 0, inherited = 0, terms = 0;
      for (size_t a = 0; a < columns.size(); ++a) {
        const int64_t at = (columns[a] * c_.num_key_heads + g) * c_.d_v + d;
        const double v = truth_.v[at], p = row.p[a];
        squares += e[a] * e[a] * v * v;
        absolute += e[a] * std::abs(v);
        inherited += p * p * var_v_[at];
        terms += p * p * v * v;
      }
      const int64_t at = (i * c_.num_heads + h) * c_.d_v + d;
      const double y = truth_.y[at];
      var_y_[at] = (coherent ? absolute * absolute : squares) +
                   64 * (inherited + kU2 * (row.n() + 4) * (terms + y * y));
    }
  }

  void TakeVarianceOfY() {
    for (double variance : var_y_) bounds_.values.push_back(std::sqrt(variance));
  }

  void ProjectVarianceOfY() {
    const int64_t width = c_.num_heads * c_.d_v;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t o = 0; o < w_.d_out; ++o) {
        double inherited = 0;
        for (int64_t d = 0; d < width; ++d) {
          const double w = w_.output_weight.data()[o * width + d];
          inherited += w * w * var_y_[i * width + d];
        }
        const double out = truth_.values[i * w_.d_out + o];
        bounds_.values.push_back(
            std::sqrt(inherited + 64 * kU2 * (width + 1) * (inherited + out * out)));
      }
    }
  }

  const AttentionConfig& c_;
  const AttentionWeights& w_;
  const SequenceInput& input_;
  const Reference& truth_;
  const int64_t n_;
  std::vector<double> var_q_, var_k_, var_v_, var_y_;
  Bounds bounds_;
};

}  // namespace

Bounds ComputeBounds(const AttentionConfig& config, const AttentionWeights& weights,
                     const SequenceInput& input, const Reference& truth) {
  return BoundsComputer(config, weights, input, truth).Compute();
}

double WorstRatio(std::span<const float> got, const std::vector<double>& truth,
                  const std::vector<double>& bounds) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (got.size() != truth.size() || got.size() != bounds.size()) return kFar;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == truth[i]) continue;
    const double distance = std::abs(got[i] - truth[i]);
    worst = std::max(worst, std::isfinite(distance) ? distance / bounds[i] : kFar);
  }
  return worst;
}

}  // namespace attend

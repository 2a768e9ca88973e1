#include "tests/core/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attend {
namespace {

std::vector<double> Linear(const std::vector<double>& x, int64_t n, const FloatBuffer& weight,
                           const FloatBuffer& bias, int64_t outputs) {
  const int64_t inputs = weight.size() / outputs;
  std::vector<double> out(n * outputs);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0 : bias.data()[o];
      for (int64_t f = 0; f < inputs; ++f) {
        sum += x[i * inputs + f] * weight.data()[o * inputs + f];
      }
      out[i * outputs + o] = sum;
    }
  }
  return out;
}

bool IsAllowed(const AttentionConfig& config, const SequenceInput& input, int64_t i, int64_t j) {
  if ((config.causal || input.causal) && j > i) return false;
  if (!input.key_mask.empty() && input.key_mask[j] == 0) return false;
  if (!input.attention_mask.empty() && input.attention_mask.row(i)[j] == 0) return false;
  return input.attention_bias.empty() || !std::isinf(input.attention_bias.row(i)[j]);
}

std::vector<double> Sparsemax(const std::vector<double>& scores) {
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double sum = 0, threshold = 0;
  for (size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    if (1 + (k + 1) * sorted[k] > sum) threshold = (sum - 1) / (k + 1);
  }
  std::vector<double> p;
  for (double s : scores) p.push_back(std::max(s - threshold, 0.0));
  return p;
}

}  // namespace

std::vector<double> NormalizeReference(Normalizer normalizer, const std::vector<double>& scores) {
  if (normalizer == Normalizer::kSparsemax) return Sparsemax(scores);
  double m = *std::max_element(scores.begin(), scores.end());
  if (normalizer == Normalizer::kSoftmaxOne) m = std::max(m, 0.0);
  double sum = normalizer == Normalizer::kSoftmaxOne ? std::exp(-m) : 0;
  for (double s : scores) sum += std::exp(s - m);
  std::vector<double> p;
  for (double s : scores) {
    switch (normalizer) {
      case Normalizer::kSigmoid:
        p.push_back(1 / (1 + std::exp(-s)));
        break;
      case Normalizer::kRelu:
        p.push_back(std::max(s, 0.0) / scores.size());
        break;
      case Normalizer::kNone:
        p.push_back(s);
        break;
      default:
        p.push_back(std::exp(s - m) / sum);
    }
  }
  return p;
}

Reference ComputeReference(const AttentionConfig& c, const AttentionWeights& w,
                           const SequenceInput& input, const QueryRounding& rounding) {
  Reference r;
  const int64_t n = r.n = input.num_items(), heads = c.num_heads, groups = c.num_key_heads;
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) x.insert(x.end(), input.items.row(i), input.items.row(i) + c.d_f);
  r.q = Linear(x, n, w.query_weight, w.query_bias, heads * c.d_k);
  if (rounding) std::transform(r.q.begin(), r.q.end(), r.q.begin(), rounding);
  r.k = Linear(x, n, w.key_weight, w.key_bias, groups * c.d_k);
  r.v = Linear(x, n, w.value_weight, w.value_bias, groups * c.d_v);
  r.allowed.resize(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) r.allowed[i * n + j] = IsAllowed(c, input, i, j);
  }
  r.scores.assign(heads * n * n, -std::numeric_limits<double>::infinity());
  r.weights.assign(heads * n * n, 0);
  r.y.assign(n * heads * c.d_v, 0);
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t g = h / (heads / groups);
    for (int64_t i = 0; i < n; ++i) {
      std::vector<double> row;
      for (int64_t j = 0; j < n; ++j) {
        if (!r.allowed[i * n + j]) continue;
        double dot = 0;
        for (int64_t d = 0; d < c.d_k; ++d) {
          dot += r.q[(i * heads + h) * c.d_k + d] * r.k[(j * groups + g) * c.d_k + d];
        }
        const double bias = input.attention_bias.empty() ? 0 : input.attention_bias.row(i)[j];
        row.push_back(c.scale * dot + bias);
        r.scores[(h * n + i) * n + j] = row.back();
      }
      if (row.empty()) continue;
      const std::vector<double> p = NormalizeReference(c.normalizer, row);
      for (int64_t j = 0, next = 0; j < n; ++j) {
        if (!r.allowed[i * n + j]) continue;
        r.weights[(h * n + i) * n + j] = p[next];
        for (int64_t d = 0; d < c.d_v; ++d) {
          r.y[(i * heads + h) * c.d_v + d] += p[next] * r.v[(j * groups + g) * c.d_v + d];
        }
        ++next;
      }
    }
  }
  r.values =
      w.output_weight.empty() ? r.y : Linear(r.y, n, w.output_weight, w.output_bias, w.d_out);
  return r;
}

}  // namespace attend

#include "tests/core/random_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

namespace attend {
namespace {

FloatBuffer Normals(Random& random, int64_t size, float deviation) {
  FloatBuffer buffer(size);
  for (float& x : buffer.span()) x = random.Normal(deviation);
  return buffer;
}

FloatBuffer Copy(const FloatBuffer& from) {
  FloatBuffer to(from.size());
  std::copy(from.span().begin(), from.span().end(), to.data());
  return to;
}

}  // namespace

AttentionWeights RandomLayer::CopyWeights() const {
  AttentionWeights w;
  w.query_weight = Copy(weights.query_weight);
  w.query_bias = Copy(weights.query_bias);
  w.key_weight = Copy(weights.key_weight);
  w.key_bias = Copy(weights.key_bias);
  w.value_weight = Copy(weights.value_weight);
  w.value_bias = Copy(weights.value_bias);
  w.output_weight = Copy(weights.output_weight);
  w.output_bias = Copy(weights.output_bias);
  w.d_out = weights.d_out;
  return w;
}

std::unique_ptr<Model> RandomLayer::Make() const {
  auto model = MakeAttentionModel(config, CopyWeights());
  if (!model.ok()) {
    fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
    abort();
  }
  return *std::move(model);
}

RandomLayer MakeRandomLayer(Random& random, const LayerShape& s) {
  RandomLayer layer;
  AttentionConfig& c = layer.config;
  c.d_f = s.d_f;
  c.d_k = s.d_k;
  c.d_v = s.d_v;
  c.num_heads = s.heads;
  c.num_key_heads = s.key_heads;
  c.scale = 1 / std::sqrt(static_cast<float>(s.d_k));
  AttentionWeights& w = layer.weights;
  const float deviation = 1 / std::sqrt(static_cast<float>(s.d_f));
  const auto weight = [&](int64_t outputs) { return Normals(random, outputs * s.d_f, deviation); };
  const auto bias = [&](int64_t outputs) {
    return s.biases ? Normals(random, outputs, 0.3f) : FloatBuffer();
  };
  w.query_weight = weight(s.heads * s.d_k);
  w.query_bias = bias(s.heads * s.d_k);
  w.key_weight = weight(s.key_heads * s.d_k);
  w.key_bias = bias(s.key_heads * s.d_k);
  w.value_weight = weight(s.key_heads * s.d_v);
  w.value_bias = bias(s.key_heads * s.d_v);
  w.d_out = s.heads * s.d_v;
  if (s.d_out > 0) {
    const float spread = 1 / std::sqrt(static_cast<float>(w.d_out));
    w.output_weight = Normals(random, s.d_out * w.d_out, spread);
    w.output_bias = bias(s.d_out);
    w.d_out = s.d_out;
  }
  return layer;
}

RandomLayer MakeAnyLayer(Random& random) {
  LayerShape s;
  s.d_f = random.Int(1, 70);
  s.d_k = random.Int(1, 40);
  s.d_v = random.Int(1, 40);
  s.key_heads = random.Int(1, 3);
  s.heads = s.key_heads * random.Int(1, 3);
  s.d_out = random.Chance(0.6) ? random.Int(1, 60) : 0;
  s.biases = random.Chance(0.5);
  RandomLayer layer = MakeRandomLayer(random, s);
  layer.config.normalizer = static_cast<Normalizer>(random.Int(0, 5));
  layer.config.causal = random.Chance(0.2);
  if (random.Chance(0.3)) layer.config.scale = random.Normal(1);
  return layer;
}

RandomSequence::RandomSequence(Random& random, int64_t n, int64_t d_f) : items_(n * d_f) {
  for (float& x : items_) x = random.Normal(1);
  input_.items = {items_.data(), n, d_f};
}

void RandomSequence::AddKeyMask(Random& random) {
  const double hidden = random.Uniform(0, 1);
  for (int64_t j = 0; j < input_.num_items(); ++j) key_mask_.push_back(!random.Chance(hidden));
  input_.key_mask = key_mask_;
}

void RandomSequence::AddAttentionMask(Random& random) {
  const int64_t n = input_.num_items();
  for (int64_t i = 0; i < n; ++i) {
    const double hidden = random.Uniform(0, 1.1f);
    for (int64_t j = 0; j < n; ++j) mask_.push_back(!random.Chance(hidden));
  }
  input_.attention_mask = {mask_.data(), n, n};
}

void RandomSequence::AddAttentionBias(Random& random) {
  const int64_t n = input_.num_items();
  const double hidden = random.Chance(0.5) ? random.Uniform(0, 0.8f) : 0;
  for (int64_t i = 0; i < n * n; ++i) {
    bias_.push_back(random.Chance(hidden) ? -std::numeric_limits<float>::infinity()
                                          : random.Normal(2));
  }
  input_.attention_bias = {bias_.data(), n, n};
}

void RandomSequence::AddAnything(Random& random) {
  if (random.Chance(0.3)) AddKeyMask(random);
  if (random.Chance(0.3)) AddAttentionMask(random);
  if (random.Chance(0.3)) AddAttentionBias(random);
  input_.causal = random.Chance(0.2);
  input_.want_scores = random.Chance(0.4);
  input_.want_weights = random.Chance(0.4);
  input_.want_values = !(input_.want_scores || input_.want_weights) || random.Chance(0.8);
}

}  // namespace attend

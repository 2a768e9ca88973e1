// Layers and requests drawn from a seed: the same ones at every run.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "core/attention_parameters.h"
#include "core/sequence.h"

namespace attend {

class Random {
 public:
  explicit Random(uint32_t seed) : bits_(seed) {}

  int64_t Int(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(double p) { return bits_() < p * 4294967296.0; }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(bits_() >> 8) * 0x1p-24f;
  }
  // About N(0, deviation^2).
  float Normal(float deviation) {
    float sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform(-0.5f, 0.5f);
    return deviation * sum;
  }

 private:
  std::mt19937 bits_;
};

struct RandomLayer {
  AttentionConfig config;
  AttentionWeights weights;

  AttentionWeights CopyWeights() const;
  // Aborts the test program when the layer is refused.
  std::unique_ptr<Model> Make() const;
};

struct LayerShape {
  int64_t d_f = 16, d_k = 8, d_v = 8, heads = 2, key_heads = 2, d_out = 0;  // 0: no projection
  bool biases = true;
};
// Scores come out with a deviation of about 1.
RandomLayer MakeRandomLayer(Random& random, const LayerShape& shape);
// Every choice drawn too.
RandomLayer MakeAnyLayer(Random& random);

// A request and the memory behind it.
class RandomSequence {
 public:
  RandomSequence(Random& random, int64_t n, int64_t d_f);
  RandomSequence(RandomSequence&&) = default;

  // Each with its own share of hidden pairs; a row may end up empty.
  void AddKeyMask(Random& random);
  void AddAttentionMask(Random& random);
  void AddAttentionBias(Random& random);
  // Some of all that, causality and what is wanted.
  void AddAnything(Random& random);

  SequenceInput& input() { return input_; }
  const SequenceInput& input() const { return input_; }
  float* item(int64_t i) { return items_.data() + i * input_.items.columns; }

 private:
  std::vector<float> items_, bias_;
  std::vector<uint8_t> key_mask_, mask_;
  SequenceInput input_;
};

}  // namespace attend

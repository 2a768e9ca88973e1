// How long a sequence takes, from its length: what the policy weighs requests by.
#pragma once

#include <cstdint>
#include <span>

#include "core/model.h"
#include "core/mutex.h"

namespace attend {

// c + a*N + b*N^2 seconds of one worker for a sequence of N items.
struct CostCurve {
  double c = 0, a = 0, b = 0;
  double Seconds(int64_t num_items) const;
};

struct CostSample {
  int64_t num_items = 0;
  double seconds = 0;
};

// The curve with no negative term that fits the samples best in relative error. With fewer samples
// than terms the higher terms are 0.
CostCurve FitCostCurve(std::span<const CostSample> samples);

// One model's curve, kept true by what its batches take. Thread-safe.
class CostModel {
 public:
  // Guesses from the model's FLOP until it is told or learns better.
  CostModel() = default;
  explicit CostModel(const CostCurve& curve) : curve_(curve), calibrated_(true) {}

  // A causal sequence costs the share of the full one that Model::Cost says.
  double Seconds(const Model& model, int64_t num_items, bool causal) const;
  // What was predicted to take `predicted` took `measured`.
  void Learn(double predicted, double measured);
  // Of a sequence that is not causal, as it stands now.
  CostCurve curve() const;

 private:
  mutable Mutex mutex_;
  CostCurve curve_ ABSL_GUARDED_BY(mutex_);
  bool calibrated_ ABSL_GUARDED_BY(mutex_) = false;
  double correction_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace attend

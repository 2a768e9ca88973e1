// How long sequences take, from their lengths: what the policy weighs requests by.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/model.h"
#include "core/mutex.h"

namespace attend {

// What a cost is linear in, summed over sequences of N items: 1, N and N^2. Of a causal sequence
// the latter two count by the share of the full one that Model::Cost says.
struct CostTerms {
  double sequences = 0, items = 0, squares = 0;
  CostTerms& operator+=(const CostTerms& other);
};
CostTerms TermsOf(const Model& model, int64_t num_items, bool causal);

// c + a*N + b*N^2 seconds of one worker for a sequence of N items.
struct CostCurve {
  double c = 0, a = 0, b = 0;
  double Seconds(const CostTerms& terms) const {
    return c * terms.sequences + a * terms.items + b * terms.squares;
  }
};

struct CostSample {
  int64_t num_items = 0;
  double seconds = 0;  // above 0
};

// The curve with no negative term that fits the samples best in relative error. With fewer samples
// than terms some terms are 0.
CostCurve FitCostCurve(std::span<const CostSample> samples);

// The curve of a machine of which nothing is known but the model's FLOP.
CostCurve GuessCostCurve(const Model& model);

// One model's curve, kept true by what its batches take. Thread-safe.
class CostModel {
 public:
  CostModel() = default;  // begins with the guess
  explicit CostModel(const CostCurve& curve) : curve_(curve) {}

  double Seconds(const Model& model, const CostTerms& terms) { return curve(model).Seconds(terms); }
  // A batch of these terms took `measured` seconds of one worker. Each term of the curve moves by
  // its share in what was predicted, so batches of short sequences don't unteach what long ones
  // cost.
  void Learn(const Model& model, const CostTerms& terms, double measured);
  CostCurve curve(const Model& model);

 private:
  Mutex mutex_;
  std::optional<CostCurve> curve_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend

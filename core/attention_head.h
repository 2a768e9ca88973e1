// One head of a QueryWalk.
#pragma once

#include <cstdint>

#include "core/attention_attend.h"
#include "core/attention_batch.h"
#include "core/simd_rows.h"
#include "core/workspace.h"

namespace attend {

// `maximum_`, `sum_`: of softmax, so far. Where a normalizer has no use for
// `sum_` it keeps what its row needs: 1/|A(i)| for relu, the threshold t for sparsemax.
class HeadWalk {
 public:
  // `state` holds walk.state_floats() and stays as it is from one visit to the next; what a
  // HeadWalk refers to outlives it.
  HeadWalk(AttentionBatch& batch, const QueryWalk& walk, int64_t head, float* state,
           Workspace& workspace);

  void Begin();
  // Visits come in order from 0 to walk.visits() - 1. False: a score left float32, and the sequence
  // has failed with INVALID_ARGUMENT naming item and head.
  bool Visit(int64_t visit);
  // Writes what the caller wants of the head. A result that leaves float32 fails the sequence.
  void End();

 private:
  bool softmax() const {
    return normalizer_ == Normalizer::kSoftmax || normalizer_ == Normalizer::kSoftmaxOne;
  }
  bool two_passes() const { return normalizer_ == Normalizer::kSparsemax; }
  float* BlockScores(int64_t block);
  bool Score(int64_t block, int64_t r, float* row);
  bool ScoreAndWeigh(int64_t block, int64_t r, float* row, float* sum);
  int64_t KeyLimit(int64_t block, int64_t r) const;
  ScoreRow RowInput(int64_t block, int64_t r, float* scores) const;
  void KeepWanted(int64_t block, int64_t r, const float* scores);
  void SolveSparsemax();
  float Weigh(float* row, int64_t width, int64_t r) const;
  void Rescale(float* factors, const float* sums);
  void AddValues(int64_t block, const float* weights, const float* factors);
  void StoreValues();
  void FinishWanted();
  float FinalFactor(int64_t r) const;
  float* PairRow(FloatBuffer& pairs, int64_t r) const;
  void Multiply(const ProductShape& shape, const float* a, const float* b, float* c);
  void FailAt(int64_t r, const char* what);

  AttentionBatch& batch_;
  const QueryWalk& walk_;
  const int64_t head_, key_head_;
  const Normalizer normalizer_;
  const SequenceInput& input_;
  AttentionSequence& sequence_;
  const bool keeps_products_;  // rows and maxima hold s_ij / row_scale_
  const bool wants_pairs_;
  const float row_scale_;
  Workspace& workspace_;
  float* maximum_ = nullptr;      // [rows]
  float* sum_ = nullptr;          // [rows]
  float* queries_ = nullptr;      // [height, d_k]
  float* y_ = nullptr;            // [height, d_v], to be divided by sum_
  float* kept_scores_ = nullptr;  // sparsemax alone: [blocks][height, keys]
};

}  // namespace attend

// The heart of the layer: some queries of one sequence against its keys.
#pragma once

#include <cstdint>

#include "core/attention_batch.h"
#include "core/workspace.h"

namespace attend {

// One unit of queries (QueryUnits), on its way through the blocks of keys. The walk goes over every
// block once; for sparsemax twice, first for the scores, then for the weights they make.
class QueryWalk {
 public:
  QueryWalk() = default;
  QueryWalk(const AttentionBatch& batch, int64_t b, int64_t unit);

  int64_t b() const { return b_; }
  int64_t first_item() const { return first_item_; }
  int64_t rows() const { return rows_; }
  int64_t height() const { return RoundUp(rows_, kRowMultiple); }  // of its products
  int64_t first_head() const { return first_head_; }
  int64_t heads() const { return heads_; }
  // Blocks of keys that causality leaves to its last query.
  int64_t blocks() const { return blocks_; }
  int64_t visits() const { return two_passes_ ? 2 * blocks_ : blocks_; }
  // Visits that one tile makes; all of them unless the walk has one head and takes too long.
  int64_t visits_per_tile() const { return visits_per_tile_; }
  int64_t tiles() const { return (visits() + visits_per_tile_ - 1) / visits_per_tile_; }
  // Floats of one head's state between visits.
  int64_t state_floats() const { return state_floats_; }
  double flop() const { return flop_; }  // of the whole walk

 private:
  int64_t b_ = 0, first_item_ = 0, rows_ = 0, first_head_ = 0, heads_ = 0, blocks_ = 0;
  bool two_passes_ = false;
  int64_t visits_per_tile_ = 1, state_floats_ = 0;
  double flop_ = 0;
};

// Makes the visits first .. first+visits_per_tile-1 of a walk:
//
//   s_ij = scale * dot(q_i, k_j) + bias_ij,   p_i = normalizer over A(i),   y_i = sum_j p_ij v_j
//
// with softmax's maximum and sum carried from block to block (online softmax, Milakov and
// Gimelshein 2018). `state` holds walk.state_floats() between the tiles of a walk of several; null
// when there is one. A score or result that leaves float32 fails the sequence with INVALID_ARGUMENT
// naming item and head. Throws std::bad_alloc.
void AttendTile(AttentionBatch& batch, const QueryWalk& walk, int64_t first_visit, float* state,
                Workspace& workspace);

}  // namespace attend

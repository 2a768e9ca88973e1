// The numbers of one batch on their way through one attention layer.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/attention_layout.h"
#include "core/attention_weights.h"
#include "core/float_buffer.h"
#include "core/matrix_view.h"
#include "core/model.h"
#include "core/packed_batch.h"

namespace attend {

// What tiles need to know of the layer. Immutable.
struct AttentionLayer {
  AttentionConfig config;
  AttentionLayout layout;
  PackedWeights projections;  // columns: q of all heads, k of all key heads, v of all key heads
  PackedWeights output;       // without blocks when the layer has no output projection
};

// One sequence of the batch.
struct AttentionSequence {
  KeyBlocks blocks;
  QueryUnits units;
  bool causal = false;
  bool project_out = false;  // its values go through the output projection
  int64_t first_key = 0;     // padded keys of the sequences before it
  SequenceOutput output;
  std::atomic<int64_t> tiles_left = 0;  // of those that end it
  std::atomic<bool> cancelled = false;
  std::atomic<bool> failed = false;
  absl::Status failure;  // written by whoever set `failed`, read after the last tile
};

// Memory of T items: T rows of q (later y), K and V: T*H*(2*d_k + d_v) floats and what is wanted of
// the sequences. Different tiles write different places; the job orders writers before readers.
class AttentionBatch {
 public:
  // Throws std::bad_alloc. `layer` outlives the batch.
  AttentionBatch(const AttentionLayer& layer, PackedBatch batch, SequenceDone done);

  const AttentionLayer& layer() const { return layer_; }
  const AttentionLayout& layout() const { return layer_.layout; }
  const PackedBatch& packed() const { return batch_; }
  RowCut panels() const { return {batch_.num_items(), kPanelRows}; }
  // A panel's items where their owner keeps them, or a view without data where they are spread over
  // several requests or need to be padded: then they are gathered.
  MatrixView<const float> ItemsInPlace(int64_t panel) const;
  // Above 0 and of no other panel in the process.
  int64_t panel_label(int64_t panel) const { return first_label_ + panel; }
  AttentionSequence& sequence(int64_t b) { return sequences_[b]; }
  const AttentionSequence& sequence(int64_t b) const { return sequences_[b]; }

  // Row t of the batch: head a's q, later y, at a * layout().slot. Rows up to a multiple of
  // kRowMultiple above T exist and hold zeros.
  float* row(int64_t t) { return rows_ + t * layout().row_floats(); }
  // One key head's block of keys as packed operands: K [d_k, keys], V [keys, d_v].
  float* keys(int64_t b, int64_t block, int64_t key_head);
  float* values(int64_t b, int64_t block, int64_t key_head);

  // The computation of b is of no more use: it was cancelled or has failed.
  bool stopped(int64_t b) const;
  void Cancel(int64_t b) { sequences_[b].cancelled.store(true); }
  // The first failure stays.
  void Fail(int64_t b, absl::Status status);
  // One of the tiles that end sequence b is done; the last one calls the completion.
  void TileDone(int64_t b);

 private:
  const AttentionLayer& layer_;
  const PackedBatch batch_;
  const SequenceDone done_;
  const int64_t first_label_;
  std::vector<AttentionSequence> sequences_;
  FloatBuffer memory_;  // one allocation, so that it lies in large pages
  float *rows_ = nullptr, *keys_ = nullptr, *values_ = nullptr;
};

}  // namespace attend

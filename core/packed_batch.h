// Sequences of any lengths end to end, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sequence.h"

namespace attend {

// T items of B sequences as one [T, d_f] matrix of rows, with `offsets` [B+1] (FlashAttention's
// cu_seqlens): rows offsets[b] .. offsets[b+1]-1 are sequence b's. The rows stay where their
// requests own them; a panel is gathered when it is computed, so packing copies nothing.
// Immutable after construction, so any thread may read it.
class PackedBatch {
 public:
  explicit PackedBatch(std::vector<SequenceInput> sequences);

  int64_t num_sequences() const { return static_cast<int64_t>(sequences_.size()); }  // B
  int64_t num_items() const { return offsets_.back(); }                              // T
  std::span<const int64_t> offsets() const { return offsets_; }                      // [B+1]
  const SequenceInput& sequence(int64_t b) const { return sequences_[b]; }
  // The sequence that owns row `row` of the batch; 0 <= row < T.
  int64_t sequence_of_row(int64_t row) const;
  // Copies rows first .. first+rows.rows-1 into `rows` [count, d_f].
  void CopyRows(int64_t first, MatrixView<float> rows) const;

 private:
  std::vector<SequenceInput> sequences_;
  std::vector<int64_t> offsets_;
};

}  // namespace attend

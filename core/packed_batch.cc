#include "core/packed_batch.h"

#include <algorithm>
#include <cstring>

namespace attend {

PackedBatch::PackedBatch(std::vector<SequenceInput> sequences) : sequences_(std::move(sequences)) {
  offsets_.reserve(sequences_.size() + 1);
  offsets_.push_back(0);
  for (const SequenceInput& s : sequences_) offsets_.push_back(offsets_.back() + s.num_items());
}

int64_t PackedBatch::sequence_of_row(int64_t row) const {
  return std::upper_bound(offsets_.begin(), offsets_.end(), row) - offsets_.begin() - 1;
}

void PackedBatch::CopyRows(int64_t first, MatrixView<float> rows) const {
  int64_t b = rows.rows > 0 ? sequence_of_row(first) : 0;
  for (int64_t r = 0; r < rows.rows; ++r) {
    while (first + r >= offsets_[b + 1]) ++b;
    std::memcpy(rows.row(r), sequences_[b].items.row(first + r - offsets_[b]),
                sizeof(float) * rows.columns);
  }
}

}  // namespace attend

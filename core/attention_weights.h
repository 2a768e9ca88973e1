// One weight matrix, packed for products with panels of rows.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "core/float_buffer.h"
#include "core/matrix_view.h"
#include "core/onednn_product.h"
#include "core/workspace.h"

namespace attend {

// `groups` runs of `size` elements each, every run padded with zeros to `padded`.
struct PaddedAxis {
  int64_t groups = 1, size = 0, padded = 0;

  int64_t total() const { return groups * padded; }
  int64_t place(int64_t i) const { return i / size * padded + i % size; }
};

// W x + b for panels of rows: C [rows, columns] = A [rows, inner] W^T + b, cut into fixed blocks of
// columns whose weights fit the second cache. Immutable after Prove; thread-safe.
class PackedWeights {
 public:
  struct Block {
    int64_t first = 0, columns = 0;
    const float* weights = nullptr;  // of the PackedWeights
  };

  PackedWeights() = default;
  PackedWeights(const PaddedAxis& inner, int64_t columns);

  // Places W [outputs, inputs] and b [outputs] or empty at the padded columns from `first` on.
  void Place(MatrixView<const float> weights, const FloatBuffer& bias, const PaddedAxis& outputs,
             int64_t first);
  // Finds the heights at which oneDNN gives a row the same bits wherever it stands in a panel and
  // however many blocks are taken at a time, by computing some. INTERNAL when a full panel itself
  // does not, or oneDNN fails.
  absl::Status Prove();

  int64_t inner() const { return inner_.total(); }
  int64_t columns() const { return bias_.size(); }
  int64_t num_blocks() const { return width_ == 0 ? 0 : (columns() + width_ - 1) / width_; }
  // `count` blocks from `first` on as one, fewer at the end.
  Block Blocks(int64_t first, int64_t count) const;
  // How many blocks a panel of `rows` takes at a time where nothing is won by taking fewer.
  int64_t BlocksTogether(int64_t rows) const;
  const float* bias(const Block& block) const { return bias_.data() + block.first; }
  // The smallest proven height that holds `rows`, at most kMostRows: a panel is filled up to it.
  int64_t Height(int64_t rows) const;
  // c [height, columns] = a [height, inner] W^T of one block, without b.
  absl::Status Multiply(const Block& block, MatrixView<const float> a, float* c,
                        Workspace& workspace) const;

 private:
  int64_t MostTogether() const;
  absl::Status ProveBlock(const Block& block);

  PaddedAxis inner_;
  FloatBuffer weights_;           // one allocation, so that it lies in large pages
  int64_t width_ = 0;             // columns of a block
  FloatBuffer bias_;              // [columns], zeros where there is none
  std::vector<int64_t> heights_;  // proven, ascending
};

}  // namespace attend

#include "core/attention_weights.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "core/attention_layout.h"
#include "core/onednn_runtime.h"

namespace attend {
namespace {

FloatBuffer Zeros(int64_t size) {
  FloatBuffer buffer(size);
  std::fill(buffer.span().begin(), buffer.span().end(), 0.0f);
  return buffer;
}

// Numbers of mixed sign and size without a pattern, the same at every start.
FloatBuffer ProofPanel(int64_t size) {
  FloatBuffer panel(size);
  uint32_t state = 1;
  for (float& x : panel.span()) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return panel;
}

// oneDNN's kernel takes three registers of columns at a time: a block is a multiple of that, as
// many as kBlockBytes hold, a few less where that leaves no small block at the end.
int64_t BlockColumns(int64_t inner, int64_t columns) {
  const int64_t step = 3 * PackLanes();
  const int64_t steps = (columns + step - 1) / step;
  const int64_t most =
      std::max(kBlockBytes / (inner * step * static_cast<int64_t>(sizeof(float))), int64_t{1});
  int64_t width = std::min(most, steps);
  while (2 * width > most && steps % width != 0 && 2 * (steps % width) < width) --width;
  return width * step;
}

}  // namespace

PackedWeights::PackedWeights(const PaddedAxis& inner, int64_t columns)
    : inner_(inner), bias_(Zeros(columns)) {
  width_ = BlockColumns(inner.total(), columns);
  weights_ = Zeros(columns * inner.total());
  for (int64_t h = kRowMultiple; h <= kMostRows; h += kRowMultiple) heights_.push_back(h);
}

void PackedWeights::Place(MatrixView<const float> weights, const FloatBuffer& bias,
                          const PaddedAxis& outputs, int64_t first) {
  for (int64_t o = 0; o < weights.rows; ++o) {
    const int64_t column = first + outputs.place(o);
    if (!bias.empty()) bias_.data()[column] = bias.data()[o];
    for (int64_t i = 0; i < weights.columns; ++i) {
      weights_.data()[PackedIndex(inner_.place(i), column, inner(), PackLanes())] =
          weights.row(o)[i];
    }
  }
}

PackedWeights::Block PackedWeights::Blocks(int64_t first, int64_t count) const {
  const int64_t column = first * width_;
  return {column, std::min(count * width_, columns() - column), weights_.data() + column * inner()};
}

int64_t PackedWeights::BlocksTogether(int64_t rows) const {
  const double block_flop = ProductShape{rows, inner(), width_}.flop();
  int64_t together = 1;
  while (2 * together <= MostTogether() && 2 * together * block_flop <= kPanelFlop) together *= 2;
  return together;
}

// A quarter, so that something is left for other workers.
int64_t PackedWeights::MostTogether() const { return (num_blocks() + 3) / 4; }

absl::Status PackedWeights::Prove() {
  const SingleThreadScope one_thread;
  std::set<int64_t> widths;
  for (int64_t together = 1; together <= std::max(MostTogether(), int64_t{1}); together *= 2) {
    const int64_t last = (num_blocks() - 1) / together * together;
    for (const int64_t first : {int64_t{0}, last}) {
      const Block block = Blocks(first, together);
      if (!widths.insert(block.columns).second) continue;
      if (absl::Status status = ProveBlock(block); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status PackedWeights::ProveBlock(const Block& block) {
  Workspace workspace;
  const FloatBuffer panel = ProofPanel((kMostRows + 1) * inner());
  FloatBuffer expected(kMostRows * block.columns), got(kMostRows * block.columns);
  absl::Status status;
  // Rows first .. first+height-1 of the panel times the first columns of the block.
  const auto multiply = [&](int64_t first, int64_t height, int64_t columns, float* c) {
    const MatrixView<const float> part(panel.data() + first * inner(), height, inner());
    status = Multiply({block.first, columns, block.weights}, part, c, workspace);
    return status.ok();
  };
  const auto same_bits = [&](int64_t first, int64_t height, int64_t columns) {
    if (!multiply(first, height, columns, got.data())) return false;
    bool same = true;
    for (int64_t r = 0; r < std::min(height, kMostRows - first); ++r) {
      same = same &&
             std::memcmp(got.data() + r * columns, expected.data() + (first + r) * block.columns,
                         columns * sizeof(float)) == 0;
    }
    return same;
  };
  if (!multiply(0, kMostRows, block.columns, expected.data())) return status;
  std::erase_if(heights_, [&](int64_t h) {
    return h < kMostRows && !same_bits(kMostRows - h, h, block.columns);
  });
  if (!status.ok() || (same_bits(1, kMostRows, block.columns) &&
                       same_bits(0, kMostRows, std::min(width_, block.columns)))) {
    return status;
  }
  if (!status.ok()) return status;
  return absl::InternalError(absl::StrCat("oneDNN ", OneDnnVersion(), " on ", OneDnnIsa(),
                                          ": a row's bits depend on its place in a product [",
                                          kMostRows, ", ", inner(), "] x [", inner(), ", ",
                                          block.columns, "] or on the product's width, so equal ",
                                          "answers to equal requests can't be promised"));
}

int64_t PackedWeights::Height(int64_t rows) const {
  return *std::lower_bound(heights_.begin(), heights_.end(), rows);
}

absl::Status PackedWeights::Multiply(const Block& block, MatrixView<const float> a, float* c,
                                     Workspace& workspace) const {
  auto product = GetProduct({a.rows, inner(), block.columns});
  if (!product.ok()) return product.status();
  return (*product)->Run(a.data, block.weights, c, workspace);
}

}  // namespace attend

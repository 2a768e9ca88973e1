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
  const int64_t width = BlockColumns(inner.total(), columns);
  weights_ = Zeros(columns * inner.total());
  for (int64_t first = 0; first < columns; first += width) {
    blocks_.push_back(
        {first, std::min(width, columns - first), weights_.data() + first * inner.total()});
  }
  for (int64_t h = kRowMultiple; h <= kMostRows; h += kRowMultiple) heights_.push_back(h);
}

void PackedWeights::Place(MatrixView<const float> weights, const FloatBuffer& bias,
                          const PaddedAxis& outputs, int64_t first) {
  const int64_t width = blocks_.front().columns;
  for (int64_t o = 0; o < weights.rows; ++o) {
    const int64_t column = first + outputs.place(o);
    Block& block = blocks_[column / width];
    if (!bias.empty()) bias_.data()[column] = bias.data()[o];
    for (int64_t i = 0; i < weights.columns; ++i) {
      block.weights[PackedIndex(inner_.place(i), column - block.first, inner(), PackLanes())] =
          weights.row(o)[i];
    }
  }
}

absl::Status PackedWeights::Prove() {
  const SingleThreadScope one_thread;
  std::set<int64_t> widths;
  for (const Block& block : blocks_) {
    if (!widths.insert(block.columns).second) continue;
    if (absl::Status status = ProveBlock(block); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PackedWeights::ProveBlock(const Block& block) {
  Workspace workspace;
  const FloatBuffer panel = ProofPanel((kMostRows + 1) * inner());
  FloatBuffer expected(kMostRows * block.columns), got(kMostRows * block.columns);
  const MatrixView<const float> whole(panel.data(), kMostRows, inner());
  absl::Status status = Multiply(block, whole, expected.data(), workspace);
  if (!status.ok()) return status;

  // Rows first .. first+height-1 of the panel, computed as a panel of their own.
  const auto same_bits = [&](int64_t first, int64_t height) {
    const MatrixView<const float> part(panel.data() + first * inner(), height, inner());
    status = Multiply(block, part, got.data(), workspace);
    const int64_t compared = std::min(height, kMostRows - first);
    return status.ok() && std::memcmp(got.data(), expected.data() + first * block.columns,
                                      compared * block.columns * sizeof(float)) == 0;
  };
  std::erase_if(heights_, [&](int64_t h) { return h < kMostRows && !same_bits(kMostRows - h, h); });
  if (status.ok() && !same_bits(1, kMostRows) && status.ok()) {
    status = absl::InternalError(
        absl::StrCat("oneDNN ", OneDnnVersion(), " on ", OneDnnIsa(),
                     ": a row's bits depend on its place in a "
                     "product [",
                     kMostRows, ", ", inner(), "] x [", inner(), ", ", block.columns,
                     "], so equal answers to equal requests can't be promised"));
  }
  return status;
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

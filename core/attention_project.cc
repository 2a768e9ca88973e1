#include "core/attention_project.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd_rows.h"

namespace attend {
namespace {

// Consecutive rows of a panel that belong to one sequence.
struct Segment {
  int64_t b = 0;
  int64_t first = 0;  // row of the panel
  int64_t item = 0;   // its place in the sequence
  int64_t rows = 0;
};

template <typename Function>
void ForEachSegment(const AttentionBatch& batch, int64_t panel, Function function) {
  const PackedBatch& packed = batch.packed();
  const int64_t begin = batch.panels().first(panel), end = begin + batch.panels().rows(panel);
  int64_t b = packed.sequence_of_row(begin);
  for (int64_t t = begin; t < end; ++b) {
    const int64_t next = std::min(end, packed.offsets()[b + 1]);
    if (next > t) function(Segment{b, t - begin, t - packed.offsets()[b], next - t});
    t = next;
  }
}

bool EverySequenceStopped(const AttentionBatch& batch, int64_t panel) {
  bool all = true;
  ForEachSegment(batch, panel,
                 [&](const Segment& segment) { all = all && batch.stopped(segment.b); });
  return all;
}

void FailPanel(AttentionBatch& batch, int64_t panel, const absl::Status& status) {
  ForEachSegment(batch, panel, [&](const Segment& segment) { batch.Fail(segment.b, status); });
}

// A panel's items as [height, input] with zeros where the panel is filled up. What is gathered is
// found again by the next tile of the same panel.
MatrixView<const float> GatherItems(const AttentionBatch& batch, int64_t panel,
                                    Workspace& workspace) {
  const MatrixView<const float> in_place = batch.ItemsInPlace(panel);
  if (!in_place.empty()) return in_place;
  const int64_t first = batch.panels().first(panel), rows = batch.panels().rows(panel);
  const int64_t height = batch.layer().projections.Height(rows), width = batch.layout().input;
  const int64_t label = batch.panel_label(panel);
  if (const float* found = workspace.Find(kPanelSlot, label)) return {found, height, width};

  float* gathered = workspace.Floats(kPanelSlot, height * width);
  std::fill(gathered + rows * width, gathered + height * width, 0.0f);
  const int64_t d_f = batch.layer().config.d_f;
  batch.packed().CopyRows(first, MatrixView<float>(gathered, rows, d_f, width));
  for (int64_t r = 0; r < rows && d_f < width; ++r) {
    std::fill(gathered + r * width + d_f, gathered + (r + 1) * width, 0.0f);
  }
  workspace.Label(kPanelSlot, label);
  return {gathered, height, width};
}

// A run of columns of the projections that belong to one head of q, k or v.
struct HeadColumns {
  enum Kind { kQuery, kKey, kValue } kind = kQuery;
  int64_t head = 0;
  int64_t begin = 0;   // within the head
  int64_t column = 0;  // of the block
  int64_t count = 0;
};

HeadColumns HeadColumnsAt(const AttentionLayout& layout, int64_t column) {
  if (column < layout.query_columns()) {
    return {HeadColumns::kQuery, column / layout.key, column % layout.key, 0, layout.key};
  }
  column -= layout.query_columns();
  if (column < layout.key_columns()) {
    return {HeadColumns::kKey, column / layout.key, column % layout.key, 0, layout.key};
  }
  column -= layout.key_columns();
  return {HeadColumns::kValue, column / layout.value, column % layout.value, 0, layout.value};
}

template <typename Function>
void ForEachHead(const AttentionLayout& layout, const PackedWeights::Block& block,
                 Function function) {
  for (int64_t column = 0; column < block.columns;) {
    HeadColumns head = HeadColumnsAt(layout, block.first + column);
    head.column = column;
    head.count = std::min(head.count - head.begin, block.columns - column);
    function(head);
    column += head.count;
  }
}

absl::Status LeavesFloat(const AttentionLayout& layout, int64_t column, int64_t item) {
  const HeadColumns head = HeadColumnsAt(layout, column);
  constexpr const char* kNames[] = {"query", "key", "value"};
  return absl::InvalidArgumentError(
      absl::StrCat("items: the ", kNames[head.kind], " of item ", item, " in head ", head.head,
                   " leaves float32; scale the items or the model's weights down"));
}

// The rows of one sequence and one head in a product, and the bias that they still lack.
struct Piece {
  MatrixView<const float> rows;
  const float* bias = nullptr;
  const Segment& segment;
  const HeadColumns& head;

  MatrixView<const float> part(int64_t row, int64_t count, int64_t column, int64_t width) const {
    return {rows.row(row) + column, count, width, rows.stride};
  }
};

// Each puts a piece and its bias in place; false when a number leaves float32.
bool StoreQueries(AttentionBatch& batch, int64_t first_row, const Piece& piece) {
  const AttentionLayout& layout = batch.layout();
  float* to =
      batch.row(first_row + piece.segment.first) + piece.head.head * layout.slot + piece.head.begin;
  return AddBias(piece.rows, piece.bias,
                 {to, piece.rows.rows, piece.rows.columns, layout.row_floats()});
}

// Calls function(block, key of the block, row, rows) for the runs of a segment's rows that lie in
// one block of keys.
template <typename Function>
void ForEachKeyRun(const KeyBlocks& blocks, const Segment& segment, Function function) {
  for (int64_t r = 0; r < segment.rows;) {
    const int64_t item = segment.item + r, block = item / blocks.size;
    const int64_t key = item - blocks.first(block);
    const int64_t rows = std::min(segment.rows - r, blocks.size - key);
    function(block, key, r, rows);
    r += rows;
  }
}

// Calls function(block, key) for the places behind a sequence's last key, if the segment holds it.
template <typename Function>
void ForEachPaddedKey(const KeyBlocks& blocks, const Segment& segment, Function function) {
  if (segment.item + segment.rows < blocks.num_items) return;
  const int64_t last = blocks.count() - 1;
  for (int64_t j = blocks.keys(last); j < blocks.padded(last); ++j) function(last, j);
}

// K [d_k, keys]: what is a row here is a column there. Whole groups of L keys go at once.
bool StoreKeys(AttentionBatch& batch, const Piece& piece) {
  const KeyBlocks& blocks = batch.sequence(piece.segment.b).blocks;
  const int64_t lanes = batch.layout().lanes, depth = batch.layout().key;
  const int64_t columns = piece.rows.columns;
  const auto place = [&](int64_t block, int64_t j) {
    return batch.keys(piece.segment.b, block, piece.head.head) +
           PackedIndex(piece.head.begin, j, depth, lanes);
  };
  bool finite = true;
  ForEachKeyRun(blocks, piece.segment, [&](int64_t block, int64_t key, int64_t r, int64_t rows) {
    for (const int64_t end = key + rows; key < end;) {
      float* to = place(block, key);
      if (key % lanes == 0 && key + lanes <= end) {
        finite &= AddBiasTransposed(piece.part(r, lanes, 0, columns), piece.bias, to);
        key += lanes, r += lanes;
        continue;
      }
      for (int64_t d = 0; d < columns; ++d) {
        to[d * lanes] = piece.rows.row(r)[d] + piece.bias[d];
        finite &= std::isfinite(to[d * lanes]);
      }
      ++key, ++r;
    }
  });
  ForEachPaddedKey(blocks, piece.segment, [&](int64_t block, int64_t j) {
    for (int64_t d = 0; d < columns; ++d) place(block, j)[d * lanes] = 0;
  });
  return finite;
}

// V [keys, d_v]: one column of L features after another.
bool StoreValues(AttentionBatch& batch, const Piece& piece) {
  const KeyBlocks& blocks = batch.sequence(piece.segment.b).blocks;
  const int64_t lanes = batch.layout().lanes;
  const auto place = [&](int64_t block, int64_t j, int64_t d) {
    return batch.values(piece.segment.b, block, piece.head.head) +
           PackedIndex(j, piece.head.begin + d, blocks.padded(block), lanes);
  };
  bool finite = true;
  for (int64_t d = 0; d < piece.rows.columns; d += lanes) {
    ForEachKeyRun(blocks, piece.segment, [&](int64_t block, int64_t key, int64_t r, int64_t rows) {
      finite &= AddBias(piece.part(r, rows, d, lanes), piece.bias + d,
                        {place(block, key, d), rows, lanes});
    });
    ForEachPaddedKey(blocks, piece.segment, [&](int64_t block, int64_t j) {
      std::fill_n(place(block, j, d), lanes, 0.0f);
    });
  }
  return finite;
}

// The first number of a segment's rows that is not finite with its bias.
struct Place {
  int64_t row = 0, column = 0;
};
Place FindOverflow(MatrixView<const float> product, const float* bias, const Segment& segment) {
  for (int64_t r = 0; r < segment.rows; ++r) {
    for (int64_t c = 0; c < product.columns; ++c) {
      if (!std::isfinite(product.row(segment.first + r)[c] + bias[c])) return {r, c};
    }
  }
  return {};
}

}  // namespace

void ProjectPanel(AttentionBatch& batch, int64_t panel, const PackedWeights::Block& columns,
                  Workspace& workspace) {
  if (EverySequenceStopped(batch, panel)) return;
  const AttentionLayout& layout = batch.layout();
  const PackedWeights& weights = batch.layer().projections;
  const MatrixView<const float> items = GatherItems(batch, panel, workspace);
  float* product = workspace.Floats(kProductSlot, items.rows * columns.columns);
  const absl::Status status = weights.Multiply(columns, items, product, workspace);
  if (!status.ok()) return FailPanel(batch, panel, status);

  const float* bias = weights.bias(columns);
  const int64_t first_row = batch.panels().first(panel);
  const MatrixView<const float> projected(product, items.rows, columns.columns);
  ForEachSegment(batch, panel, [&](const Segment& segment) {
    bool finite = true;
    ForEachHead(layout, columns, [&](const HeadColumns& head) {
      const MatrixView<const float> rows(projected.row(segment.first) + head.column, segment.rows,
                                         head.count, projected.stride);
      const Piece piece{rows, bias + head.column, segment, head};
      if (head.kind == HeadColumns::kQuery) finite &= StoreQueries(batch, first_row, piece);
      if (head.kind == HeadColumns::kKey) finite &= StoreKeys(batch, piece);
      if (head.kind == HeadColumns::kValue) finite &= StoreValues(batch, piece);
    });
    if (finite) return;
    const Place bad = FindOverflow(projected, bias, segment);
    batch.Fail(segment.b, LeavesFloat(layout, columns.first + bad.column, segment.item + bad.row));
  });
}

void ProjectPanelOut(AttentionBatch& batch, int64_t panel, const PackedWeights::Block& columns,
                     Workspace& workspace) {
  if (EverySequenceStopped(batch, panel)) return;
  const PackedWeights& weights = batch.layer().output;
  const int64_t rows = batch.panels().rows(panel), height = weights.Height(rows);
  const int64_t width = batch.layout().row_floats();
  MatrixView<const float> y(batch.row(batch.panels().first(panel)), height, width);
  if (height > RoundUp(rows, kRowMultiple)) {
    float* filled = workspace.Floats(kPanelSlot, height * width);
    const int64_t held = rows * width;
    std::copy_n(y.data, held, filled);
    std::fill(filled + held, filled + height * width, 0.0f);
    y.data = filled;
  }
  float* product = workspace.Floats(kProductSlot, height * columns.columns);
  const absl::Status status = weights.Multiply(columns, y, product, workspace);
  if (!status.ok()) return FailPanel(batch, panel, status);

  const int64_t d_out = batch.layout().d_out;
  const int64_t count = std::min(columns.columns, d_out - columns.first);
  const float* bias = weights.bias(columns);
  const MatrixView<const float> projected(product, height, count, columns.columns);
  ForEachSegment(batch, panel, [&](const Segment& segment) {
    AttentionSequence& s = batch.sequence(segment.b);
    if (!s.project_out || batch.stopped(segment.b)) return;
    const MatrixView<const float> part(projected.row(segment.first), segment.rows, count,
                                       projected.stride);
    float* to = s.output.values.data() + segment.item * d_out + columns.first;
    if (AddBias(part, bias, {to, segment.rows, count, d_out})) return;
    const Place bad = FindOverflow(projected, bias, segment);
    batch.Fail(segment.b,
               absl::InvalidArgumentError(absl::StrCat(
                   "items: feature ", columns.first + bad.column, " of the result of item ",
                   segment.item + bad.row,
                   ", over all heads, leaves float32; scale the items or the model's weights "
                   "down")));
  });
}

}  // namespace attend

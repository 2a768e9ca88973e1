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
void ForEachSegment(const PackedBatch& packed, int64_t panel, Function function) {
  const int64_t begin = panel * kPanelRows;
  const int64_t end = std::min(begin + kPanelRows, packed.num_items());
  int64_t b = packed.sequence_of_row(begin);
  for (int64_t t = begin; t < end; ++b) {
    const int64_t next = std::min(end, packed.offsets()[b + 1]);
    if (next > t) function(Segment{b, t - begin, t - packed.offsets()[b], next - t});
    t = next;
  }
}

bool EverySequenceStopped(const AttentionBatch& batch, int64_t panel) {
  bool all = true;
  ForEachSegment(batch.packed(), panel,
                 [&](const Segment& segment) { all = all && batch.stopped(segment.b); });
  return all;
}

void FailPanel(AttentionBatch& batch, int64_t panel, const absl::Status& status) {
  ForEachSegment(batch.packed(), panel,
                 [&](const Segment& segment) { batch.Fail(segment.b, status); });
}

// A panel's items as [height, input] with zeros where the panel is filled up. They are read where
// their owner keeps them when that is already the form.
MatrixView<const float> GatherItems(const AttentionBatch& batch, int64_t panel,
                                    Workspace& workspace) {
  const int64_t first = panel * kPanelRows, rows = batch.panel_rows(panel);
  const int64_t height = batch.layer().projections.Height(rows), width = batch.layout().input;
  const PackedBatch& packed = batch.packed();
  const int64_t b = packed.sequence_of_row(first);
  const MatrixView<const float>& items = packed.sequence(b).items;
  if (first + rows <= packed.offsets()[b + 1] && rows == height && items.stride == width &&
      items.columns == width) {
    return {items.row(first - packed.offsets()[b]), rows, width};
  }
  float* gathered = workspace.Floats(kPanelSlot, height * width);
  std::fill(gathered + rows * width, gathered + height * width, 0.0f);
  const int64_t d_f = batch.layer().config.d_f;
  packed.CopyRows(first, MatrixView<float>(gathered, rows, d_f, width));
  for (int64_t r = 0; r < rows && d_f < width; ++r) {
    std::fill(gathered + r * width + d_f, gathered + (r + 1) * width, 0.0f);
  }
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

// The rows of one sequence and one head in a product [rows, stride].
struct Piece {
  const float* data = nullptr;
  int64_t stride = 0;
  const Segment& segment;
  const HeadColumns& head;

  const float* row(int64_t r) const { return data + r * stride; }
  bool ends_sequence(const AttentionSequence& s) const {
    return segment.item + segment.rows == s.blocks.num_items;
  }
};

void StoreQueries(AttentionBatch& batch, int64_t first_row, const Piece& piece) {
  const int64_t place = piece.head.head * batch.layout().slot + piece.head.begin;
  for (int64_t r = 0; r < piece.segment.rows; ++r) {
    std::copy_n(piece.row(r), piece.head.count,
                batch.row(first_row + piece.segment.first + r) + place);
  }
}

// K [d_k, keys]: what is a row here is a column there. Whole groups of L keys go at once.
void StoreKeys(AttentionBatch& batch, const Piece& piece) {
  const AttentionSequence& s = batch.sequence(piece.segment.b);
  const int64_t lanes = batch.layout().lanes, depth = batch.layout().key;
  const auto column = [&](int64_t block, int64_t j) {
    return batch.keys(piece.segment.b, block, piece.head.head) +
           PackedIndex(piece.head.begin, j, depth, lanes);
  };
  for (int64_t r = 0; r < piece.segment.rows;) {
    const int64_t item = piece.segment.item + r, block = item / s.blocks.size;
    float* to = column(block, item - s.blocks.first(block));
    if (item % lanes == 0 && r + lanes <= piece.segment.rows) {
      TransposeRows(piece.row(r), piece.stride, lanes, piece.head.count, to);
      r += lanes;
      continue;
    }
    for (int64_t d = 0; d < piece.head.count; ++d) to[d * lanes] = piece.row(r)[d];
    ++r;
  }
  if (!piece.ends_sequence(s)) return;
  const int64_t last = s.blocks.count() - 1;
  for (int64_t j = s.blocks.keys(last); j < s.blocks.padded(last); ++j) {
    for (int64_t d = 0; d < piece.head.count; ++d) column(last, j)[d * lanes] = 0;
  }
}

// V [keys, d_v]: chunks of L floats, one for every block of columns.
void StoreValues(AttentionBatch& batch, const Piece& piece) {
  const AttentionSequence& s = batch.sequence(piece.segment.b);
  const int64_t lanes = batch.layout().lanes;
  const auto chunk = [&](int64_t block, int64_t j, int64_t d) {
    return batch.values(piece.segment.b, block, piece.head.head) +
           PackedIndex(j, piece.head.begin + d, s.blocks.padded(block), lanes);
  };
  for (int64_t r = 0; r < piece.segment.rows; ++r) {
    const int64_t item = piece.segment.item + r, block = item / s.blocks.size;
    for (int64_t d = 0; d < piece.head.count; d += lanes) {
      std::copy_n(piece.row(r) + d, lanes, chunk(block, item - s.blocks.first(block), d));
    }
  }
  if (!piece.ends_sequence(s)) return;
  const int64_t last = s.blocks.count() - 1;
  for (int64_t j = s.blocks.keys(last); j < s.blocks.padded(last); ++j) {
    for (int64_t d = 0; d < piece.head.count; d += lanes)
      std::fill_n(chunk(last, j, d), lanes, 0.0f);
  }
}

// Adds the bias to a segment's rows of a product; the first number that is not finite, or -1.
struct Place {
  int64_t row = -1, column = -1;
};
Place AddBias(float* product, const float* bias, int64_t columns, const Segment& segment) {
  for (int64_t r = segment.first; r < segment.first + segment.rows; ++r) {
    float* row = product + r * columns;
    if (AddBiasRow(row, bias, columns)) continue;
    const float* bad = std::find_if(row, row + columns, [](float x) { return !std::isfinite(x); });
    return {r, bad - row};
  }
  return {};
}

}  // namespace

void ProjectPanel(AttentionBatch& batch, int64_t panel, int64_t block, Workspace& workspace) {
  if (EverySequenceStopped(batch, panel)) return;
  const AttentionLayout& layout = batch.layout();
  const PackedWeights& weights = batch.layer().projections;
  const PackedWeights::Block& columns = weights.block(block);
  const MatrixView<const float> items = GatherItems(batch, panel, workspace);
  float* product = workspace.Floats(kProductSlot, items.rows * columns.columns);
  const absl::Status status = weights.Multiply(columns, items, product, workspace);
  if (!status.ok()) return FailPanel(batch, panel, status);

  ForEachSegment(batch.packed(), panel, [&](const Segment& segment) {
    const Place bad = AddBias(product, weights.bias(columns), columns.columns, segment);
    if (bad.row >= 0) {
      batch.Fail(segment.b, LeavesFloat(layout, columns.first + bad.column,
                                        segment.item + bad.row - segment.first));
      return;
    }
    const float* rows = product + segment.first * columns.columns;
    ForEachHead(layout, columns, [&](const HeadColumns& head) {
      const Piece piece{rows + head.column, columns.columns, segment, head};
      if (head.kind == HeadColumns::kQuery) StoreQueries(batch, panel * kPanelRows, piece);
      if (head.kind == HeadColumns::kKey) StoreKeys(batch, piece);
      if (head.kind == HeadColumns::kValue) StoreValues(batch, piece);
    });
  });
}

void ProjectPanelOut(AttentionBatch& batch, int64_t panel, int64_t block, Workspace& workspace) {
  if (EverySequenceStopped(batch, panel)) return;
  const PackedWeights& weights = batch.layer().output;
  const PackedWeights::Block& columns = weights.block(block);
  const int64_t height = weights.Height(batch.panel_rows(panel));
  const int64_t width = batch.layout().row_floats();
  MatrixView<const float> y(batch.row(panel * kPanelRows), height, width);
  if (height > RoundUp(batch.panel_rows(panel), kRowMultiple)) {
    float* filled = workspace.Floats(kPanelSlot, height * width);
    const int64_t held = batch.panel_rows(panel) * width;
    std::copy_n(y.data, held, filled);
    std::fill(filled + held, filled + height * width, 0.0f);
    y.data = filled;
  }
  float* product = workspace.Floats(kProductSlot, height * columns.columns);
  const absl::Status status = weights.Multiply(columns, y, product, workspace);
  if (!status.ok()) return FailPanel(batch, panel, status);

  const int64_t d_out = batch.layout().d_out;
  const int64_t count = std::min(columns.columns, d_out - columns.first);
  ForEachSegment(batch.packed(), panel, [&](const Segment& segment) {
    AttentionSequence& s = batch.sequence(segment.b);
    if (!s.project_out || batch.stopped(segment.b)) return;
    const Place bad = AddBias(product, weights.bias(columns), columns.columns, segment);
    if (bad.row >= 0) {
      batch.Fail(segment.b,
                 absl::InvalidArgumentError(absl::StrCat(
                     "items: feature ", columns.first + bad.column, " of the result of item ",
                     segment.item + bad.row - segment.first,
                     ", over all heads, leaves float32; scale the items or the model's weights "
                     "down")));
      return;
    }
    for (int64_t r = 0; r < segment.rows; ++r) {
      std::copy_n(product + (segment.first + r) * columns.columns, count,
                  s.output.values.data() + (segment.item + r) * d_out + columns.first);
    }
  });
}

}  // namespace attend

#include "core/attention_batch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace attend {

namespace {

int64_t TakeLabels(int64_t count) {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace

AttentionBatch::AttentionBatch(const AttentionLayer& layer, PackedBatch batch, SequenceDone done)
    : layer_(layer),
      batch_(std::move(batch)),
      done_(std::move(done)),
      first_label_(TakeLabels(panels().count())),
      sequences_(batch_.num_sequences()) {
  const AttentionLayout& layout = layer_.layout;
  int64_t padded_keys = 0;
  for (int64_t b = 0; b < batch_.num_sequences(); ++b) {
    const SequenceInput& input = batch_.sequence(b);
    const int64_t n = input.num_items(), pairs = layout.heads * n * n;
    AttentionSequence& s = sequences_[b];
    s.causal = input.causal || layer_.config.causal;
    s.blocks = KeyBlocks(n, s.causal);
    s.units = QueryUnits(layout, layer_.config.normalizer, s.blocks);
    s.project_out = layout.has_output && input.want_values;
    s.first_key = padded_keys;
    padded_keys += s.blocks.padded_total();
    if (input.want_values) s.output.values = FloatBuffer(n * layout.d_out);
    if (input.want_scores) s.output.scores = FloatBuffer(pairs);
    if (input.want_weights) s.output.weights = FloatBuffer(pairs);
  }
  const int64_t items = batch_.num_items(), height = RoundUp(items, kRowMultiple);
  const int64_t row_floats = height * layout.row_floats();
  const int64_t key_floats = padded_keys * layout.key_columns();
  memory_ = FloatBuffer(row_floats + key_floats + padded_keys * layout.value_columns());
  rows_ = memory_.data();
  keys_ = rows_ + row_floats;
  values_ = keys_ + key_floats;
  std::fill(row(items), keys_, 0.0f);
}

float* AttentionBatch::keys(int64_t b, int64_t block, int64_t key_head) {
  const AttentionSequence& s = sequences_[b];
  return keys_ + (s.first_key + s.blocks.first(block)) * layout().key_columns() +
         key_head * layout().key * s.blocks.padded(block);
}

float* AttentionBatch::values(int64_t b, int64_t block, int64_t key_head) {
  const AttentionSequence& s = sequences_[b];
  return values_ + (s.first_key + s.blocks.first(block)) * layout().value_columns() +
         key_head * layout().value * s.blocks.padded(block);
}

MatrixView<const float> AttentionBatch::ItemsInPlace(int64_t panel) const {
  const int64_t first = panels().first(panel), rows = panels().rows(panel);
  const int64_t b = batch_.sequence_of_row(first), width = layout().input;
  const MatrixView<const float>& items = batch_.sequence(b).items;
  const bool together = first + rows <= batch_.offsets()[b + 1];
  if (!together || rows != layer_.projections.Height(rows) || items.stride != width ||
      items.columns != width) {
    return {};
  }
  return {items.row(first - batch_.offsets()[b]), rows, width};
}

bool AttentionBatch::stopped(int64_t b) const {
  const AttentionSequence& s = sequences_[b];
  return s.failed.load(std::memory_order_relaxed) || s.cancelled.load(std::memory_order_relaxed);
}

void AttentionBatch::Fail(int64_t b, absl::Status status) {
  AttentionSequence& s = sequences_[b];
  if (!s.failed.exchange(true)) s.failure = std::move(status);
}

void AttentionBatch::TileDone(int64_t b) {
  AttentionSequence& s = sequences_[b];
  // Acquires what the tiles before wrote, and that they saw the sequence stopped.
  if (s.tiles_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (s.failed.load()) {
    done_(b, std::move(s.failure));
  } else if (s.cancelled.load()) {
    done_(b, absl::CancelledError("cancelled while it was computed"));
  } else {
    done_(b, std::move(s.output));
  }
  s.output = SequenceOutput();
}

}  // namespace attend

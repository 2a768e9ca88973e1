// Where an attention layer keeps its numbers: how sizes are padded, keys cut, rows cut into panels.
//
// Everything that belongs to one sequence follows from its own length and the model alone, never
// from its neighbours in the batch: that is half of the promise of equal bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attention_parameters.h"
#include "core/onednn_product.h"
#include "core/simd_rows.h"

namespace attend {

inline constexpr int64_t kPanelRows = 64;   // rows of the batch that are projected together
inline constexpr int64_t kQueryRows = 64;   // queries of one sequence that attend together
inline constexpr int64_t kMostRows = 80;    // of a last panel or unit of queries, see RowCut
inline constexpr int64_t kRowMultiple = 4;  // heights of products are rounded up to this
inline constexpr double kTileFlop = 1e8;    // about a millisecond of one core
// A unit of queries is shorter, so that the tiles that one worker takes after each other are of the
// same head, whose keys and values stay in the second cache.
inline constexpr double kUnitFlop = 1e7;
// The weights of a block of columns: they stay in the second cache while panel after panel is
// multiplied by them. More panels together would keep short sequences waiting for long ones.
inline constexpr int64_t kBlockBytes = 384 << 10;
inline constexpr int64_t kPanelsTogether = 8;
// A panel that is multiplied alone takes as many blocks at a time as make this.
inline constexpr double kPanelFlop = 4e7;
// Sparsemax needs all scores of its rows before the first weight: rows are fewer where keys are
// many, so that a worker never keeps more scores than this.
inline constexpr int64_t kSparsemaxScores = int64_t{1} << 20;

// Sizes of one head and of one row, padded with zeros to whole registers of L floats.
struct AttentionLayout {
  AttentionLayout() = default;
  AttentionLayout(const AttentionConfig& config, const AttentionWeights& weights)
      : lanes(PackLanes()),
        heads(config.num_heads),
        key_heads(config.num_key_heads),
        d_v(config.d_v),
        d_out(weights.d_out),
        input(RoundUp(config.d_f, lanes)),
        key(RoundUp(config.d_k, lanes)),
        value(RoundUp(config.d_v, lanes)),
        has_output(!weights.output_weight.empty()),
        slot(has_output ? std::max(key, value) : key) {}

  int64_t lanes = 0;
  int64_t heads = 0, key_heads = 0;  // H and the heads that keys and values have
  int64_t d_v = 0, d_out = 0;
  int64_t input = 0, key = 0, value = 0;  // d_f, d_k, d_v, padded
  bool has_output = false;
  // Floats of one head in a row of queries. Where an output projection follows, head a's y_i takes
  // the place of its q_i, so that neither needs memory of its own.
  int64_t slot = 0;

  int64_t query_columns() const { return heads * key; }
  int64_t key_columns() const { return key_heads * key; }
  int64_t value_columns() const { return key_heads * value; }
  int64_t projected_columns() const { return query_columns() + key_columns() + value_columns(); }
  int64_t row_floats() const { return heads * slot; }  // of q, later y
  int64_t queries_per_key_head() const { return heads / key_heads; }
};

// Rows cut into pieces of `size`. The last one takes up to a quarter more, rather than leave a few
// rows that would cost nearly as much as a whole piece.
struct RowCut {
  int64_t total = 0, size = 1;

  int64_t count() const { return std::max((total + size - 1 - slack()) / size, int64_t{1}); }
  int64_t first(int64_t piece) const { return piece * size; }
  int64_t rows(int64_t piece) const { return piece + 1 == count() ? total - first(piece) : size; }
  int64_t piece_of(int64_t row) const { return std::min(row / size, count() - 1); }

 private:
  int64_t slack() const { return size / 4 / kRowMultiple * kRowMultiple; }
};

// The keys of one sequence, cut at fixed places into blocks that are scored one after another.
struct KeyBlocks {
  KeyBlocks() = default;
  // Causal sequences are cut finer: what lies wholly above the diagonal is never computed.
  KeyBlocks(int64_t num_items, bool causal) : num_items(num_items), size(causal ? 256 : 512) {}

  int64_t num_items = 0;
  int64_t size = 0;

  int64_t count() const { return (num_items + size - 1) / size; }
  int64_t first(int64_t block) const { return block * size; }
  int64_t keys(int64_t block) const { return std::min(size, num_items - first(block)); }
  // Keys as they are laid out: whole cache lines of scores.
  int64_t padded(int64_t block) const { return RoundUp(keys(block), kRowAlignment); }
  int64_t padded_total() const { return first(count() - 1) + padded(count() - 1); }
};

// The queries of one sequence, cut into units that one worker takes at a time.
struct QueryUnits {
  QueryUnits() = default;
  QueryUnits(const AttentionLayout& layout, Normalizer normalizer, const KeyBlocks& blocks) {
    const int64_t keys = blocks.padded_total();
    int64_t rows = kQueryRows;
    if (normalizer == Normalizer::kSparsemax) {
      rows = std::clamp(kSparsemaxScores / keys / kRowMultiple * kRowMultiple, kRowMultiple,
                        kQueryRows);
    }
    queries = {blocks.num_items, rows};
    const double flop_per_head = 2.0 * rows * keys * (layout.key + layout.value);
    const auto most = std::max(static_cast<int64_t>(kUnitFlop / flop_per_head), int64_t{1});
    head_groups = (layout.heads + most - 1) / most;
    heads = (layout.heads + head_groups - 1) / head_groups;
  }

  RowCut queries;
  int64_t heads = 1;  // of one unit, fewer in the last
  int64_t head_groups = 1;

  int64_t count() const { return queries.count() * head_groups; }
};

}  // namespace attend

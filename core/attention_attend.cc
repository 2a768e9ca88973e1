#include "core/attention_attend.h"

#include <algorithm>

#include "core/attention_head.h"
#include "core/attention_project.h"

namespace attend {

QueryWalk::QueryWalk(const AttentionBatch& batch, int64_t b, int64_t unit) : b_(b) {
  const AttentionLayout& layout = batch.layout();
  const AttentionSequence& s = batch.sequence(b);
  const int64_t n = s.blocks.num_items;
  const int64_t piece = unit % s.units.queries.count();
  first_item_ = s.units.queries.first(piece);
  rows_ = s.units.queries.rows(piece);
  first_head_ = unit / s.units.queries.count() * s.units.heads;
  heads_ = std::min(s.units.heads, layout.heads - first_head_);
  const int64_t keys = s.causal ? first_item_ + rows_ : n;
  blocks_ = (keys + s.blocks.size - 1) / s.blocks.size;
  two_passes_ = batch.layer().config.normalizer == Normalizer::kSparsemax;

  const AttentionConfig& config = batch.layer().config;
  const double pairs = s.causal ? rows_ * (first_item_ + (rows_ + 1) / 2.0) : rows_ * 1.0 * n;
  flop_ = 2 * pairs * heads_ * (config.d_k + config.d_v);
  const double block_flop = 2.0 * height() * s.blocks.size * (layout.key + layout.value);
  visits_per_tile_ = visits();
  if (s.units.heads == 1) {
    visits_per_tile_ =
        std::clamp(static_cast<int64_t>(kTileFlop / block_flop), int64_t{1}, visits());
  }
  state_floats_ = 2 * kMostRows + height() * (layout.key + layout.value);
  if (two_passes_) state_floats_ += height() * s.blocks.padded_total();
}

void AttendTile(AttentionBatch& batch, const QueryWalk& walk, int64_t first_visit, float* state,
                Workspace& workspace) {
  const int64_t end = std::min(walk.visits(), first_visit + walk.visits_per_tile());
  if (state == nullptr) state = workspace.Floats(kStateSlot, walk.state_floats());
  for (int64_t h = 0; h < walk.heads(); ++h) {
    if (batch.stopped(walk.b())) return;
    HeadWalk head(batch, walk, walk.first_head() + h, state, workspace);
    if (first_visit == 0) head.Begin();
    for (int64_t visit = first_visit; visit < end; ++visit) {
      if (!head.Visit(visit)) return;
    }
    if (end == walk.visits()) head.End();
  }
}

}  // namespace attend

#include "core/attention_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/attention_project.h"

namespace attend {

AttentionJob::AttentionJob(const AttentionLayer& layer, PackedBatch batch, SequenceDone done)
    : batch_(layer, std::move(batch), std::move(done)) {
  Plan();
}

void AttentionJob::Plan() {
  const AttentionLayer& layer = batch_.layer();
  const PackedBatch& packed = batch_.packed();
  const int64_t blocks = layer.projections.num_blocks(), out_blocks = layer.output.num_blocks();
  const RowCut cut = batch_.panels();
  panels_.resize(cut.count());
  progress_.resize(packed.num_sequences());
  ready_.reserve(packed.num_sequences());
  int64_t units = 0;
  for (int64_t b = 0; b < packed.num_sequences(); ++b) {
    AttentionSequence& s = batch_.sequence(b);
    units += s.units.count();
    const int64_t first = cut.piece_of(packed.offsets()[b]);
    const int64_t last = cut.piece_of(packed.offsets()[b + 1] - 1);
    progress_[b] = {(last - first + 1) * blocks, s.units.count()};
    s.tiles_left = s.project_out ? (last - first + 1) * out_blocks : s.units.count();
    for (int64_t unit = 0; unit < s.units.count(); ++unit) {
      unfinished_ += QueryWalk(batch_, b, unit).tiles();
    }
    for (int64_t panel = first; panel <= last && s.project_out; ++panel) {
      ++panels_[panel].sequences_left;
    }
  }
  for (int64_t p = 0; p < cut.count(); ++p) {
    panels_[p].first_sequence = packed.sequence_of_row(cut.first(p));
    panels_[p].last_sequence = packed.sequence_of_row(cut.first(p) + cut.rows(p) - 1);
    if (panels_[p].sequences_left > 0) unfinished_ += out_blocks;
  }
  walks_.resize(units);
  out_ready_.reserve(panels_.size() * out_blocks);
  OrderProjections();
  runnable_ = static_cast<int64_t>(projections_.size());
  unfinished_ += runnable_;
}

// Some panels times one block of columns, then the next block, so that its weights stay in the
// cache. The panels end where a sequence does, for it can attend then. One whose items must be
// gathered stands alone, so that its worker gathers them once.
void AttentionJob::OrderProjections() {
  const int64_t blocks = batch_.layer().projections.num_blocks(), panels = batch_.panels().count();
  const auto offsets = batch_.packed().offsets();
  projections_.reserve(panels * blocks);
  for (int64_t first = 0, end = 0; first < panels; first = end) {
    do {
      ++end;
    } while (end < panels && end - first < kPanelsTogether &&
             offsets[panels_[end - 1].first_sequence + 1] > batch_.panels().first(end) &&
             !batch_.ItemsInPlace(end - 1).empty() && !batch_.ItemsInPlace(end).empty());
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t p = first; p < end; ++p) {
        projections_.push_back(static_cast<int32_t>(p * blocks + block));
      }
    }
  }
}

bool AttentionJob::Claim(Tile* tile) {
  if (runnable_ == 0) return false;
  --runnable_;
  const AttentionLayer& layer = batch_.layer();
  if (first_out_ < out_ready_.size()) {
    const int64_t index = out_ready_[first_out_++], blocks = layer.output.num_blocks();
    const double flop = 2.0 * batch_.panels().rows(index / blocks) * layer.config.num_heads *
                        layer.config.d_v * layer.layout.d_out / blocks;
    *tile = {kProjectOut, static_cast<int32_t>(index), flop};
    return true;
  }
  if (!suspended_.empty() || first_ready_ < ready_.size()) {
    ClaimUnits(tile);
    return true;
  }
  const int32_t index = projections_[next_projection_++];
  const int64_t blocks = layer.projections.num_blocks(), panel = index / blocks;
  const AttentionConfig& c = layer.config;
  const int64_t outputs = c.num_heads * c.d_k + c.num_key_heads * (c.d_k + c.d_v);
  *tile = {kProject, index, 2.0 * c.d_f * batch_.panels().rows(panel) * outputs / blocks};
  return true;
}

void AttentionJob::ClaimUnits(Tile* tile) {
  int32_t index;
  if (!suspended_.empty()) {
    index = suspended_.back();
    suspended_.pop_back();
  } else {
    index = OpenNextUnit();
  }
  const QueryWalk& walk = walks_[index]->walk;
  *tile = {kAttend, index, walk.flop() / walk.tiles()};
}

int32_t AttentionJob::OpenNextUnit() {
  if (free_.empty()) {
    walks_[num_walks_] = std::make_unique<OpenWalk>();
    free_.push_back(num_walks_++);
  }
  const int32_t index = free_.back();
  free_.pop_back();
  ReadyUnits& ready = ready_[first_ready_];
  walks_[index]->walk = QueryWalk(batch_, ready.b, ready.next++);
  walks_[index]->next_visit = 0;
  if (ready.next == batch_.sequence(ready.b).units.count()) ++first_ready_;
  return index;
}

void AttentionJob::Run(const Tile& tile, Workspace& workspace) {
  const AttentionLayer& layer = batch_.layer();
  if (tile.kind == kProject) {
    const int64_t blocks = layer.projections.num_blocks();
    ProjectPanel(batch_, tile.index / blocks, tile.index % blocks, workspace);
  } else if (tile.kind == kProjectOut) {
    const int64_t blocks = layer.output.num_blocks();
    ProjectPanelOut(batch_, tile.index / blocks, tile.index % blocks, workspace);
  } else {
    OpenWalk& open = *walks_[tile.index];
    float* state = nullptr;
    if (open.walk.tiles() > 1) {
      if (open.state.size() < open.walk.state_floats()) {
        open.state = FloatBuffer(open.walk.state_floats());
      }
      state = open.state.data();
    }
    AttendTile(batch_, open.walk, open.next_visit, state, workspace);
  }
  SequencesDone(tile);
}

void AttentionJob::Fail(const Tile& tile, const absl::Status& status) {
  if (tile.kind == kAttend) {
    batch_.Fail(walks_[tile.index]->walk.b(), status);
  } else {
    const int64_t blocks = tile.kind == kProject ? batch_.layer().projections.num_blocks()
                                                 : batch_.layer().output.num_blocks();
    const Panel& panel = panels_[tile.index / blocks];
    for (int64_t b = panel.first_sequence; b <= panel.last_sequence; ++b) batch_.Fail(b, status);
  }
  SequencesDone(tile);
}

// Counts the tile for the sequences that it may have ended.
void AttentionJob::SequencesDone(const Tile& tile) {
  if (tile.kind == kAttend) {
    const OpenWalk& open = *walks_[tile.index];
    const int64_t b = open.walk.b();
    if (open.on_last_tile() && !batch_.sequence(b).project_out) batch_.TileDone(b);
  } else if (tile.kind == kProjectOut) {
    const Panel& panel = panels_[tile.index / batch_.layer().output.num_blocks()];
    for (int64_t b = panel.first_sequence; b <= panel.last_sequence; ++b) {
      if (batch_.sequence(b).project_out) batch_.TileDone(b);
    }
  }
}

int64_t AttentionJob::Finish(const Tile& tile) {
  --unfinished_;
  int64_t more = 0;
  if (tile.kind == kProject) {
    more = FinishProjection(tile.index / batch_.layer().projections.num_blocks());
  } else if (tile.kind == kAttend) {
    more = FinishUnits(tile.index);
  }
  runnable_ += more;
  return more;
}

int64_t AttentionJob::FinishProjection(int64_t panel) {
  int64_t more = 0;
  for (int64_t b = panels_[panel].first_sequence; b <= panels_[panel].last_sequence; ++b) {
    if (--progress_[b].projections_left > 0) continue;
    ready_.push_back({b, 0});
    more += progress_[b].units_left;
  }
  return more;
}

int64_t AttentionJob::FinishUnits(int32_t index) {
  OpenWalk& open = *walks_[index];
  if (!open.on_last_tile()) {
    open.next_visit += open.walk.visits_per_tile();
    suspended_.push_back(index);
    return 1;
  }
  free_.push_back(index);
  const int64_t b = open.walk.b();
  return --progress_[b].units_left == 0 ? FinishSequence(b) : 0;
}

// The output panels that waited for this sequence alone.
int64_t AttentionJob::FinishSequence(int64_t b) {
  if (!batch_.sequence(b).project_out) return 0;
  const int64_t blocks = batch_.layer().output.num_blocks();
  const auto offsets = batch_.packed().offsets();
  int64_t more = 0;
  const int64_t first = batch_.panels().piece_of(offsets[b]);
  const int64_t last = batch_.panels().piece_of(offsets[b + 1] - 1);
  for (int64_t p = first; p <= last; ++p) --panels_[p].sequences_left;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t p = first; p <= last; ++p) {
      if (panels_[p].sequences_left > 0) continue;
      out_ready_.push_back(p * blocks + block);
      ++more;
    }
  }
  return more;
}

}  // namespace attend

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
  PlanPanels();
  progress_.resize(packed.num_sequences());
  ready_.reserve(packed.num_sequences());
  int64_t units = 0;
  for (int64_t b = 0; b < packed.num_sequences(); ++b) {
    AttentionSequence& s = batch_.sequence(b);
    units += s.units.count();
    progress_[b].units_left = s.units.count();
    for (int64_t unit = 0; unit < s.units.count(); ++unit) {
      unfinished_ += QueryWalk(batch_, b, unit).tiles();
    }
    int64_t out_tiles = 0;
    const auto [first, last] = PanelsOf(b);
    for (int64_t p = first; p <= last; ++p) {
      progress_[b].projections_left += TilesOf(layer.projections, p);
      out_tiles += TilesOf(layer.output, p);
      panels_[p].sequences_left += s.project_out;
    }
    s.tiles_left = s.project_out ? out_tiles : s.units.count();
  }
  walks_.resize(units);
  runnable_ = static_cast<int64_t>(projections_.size());
  unfinished_ += runnable_;
  for (int64_t p = 0; p < batch_.panels().count(); ++p) {
    if (panels_[p].sequences_left > 0) unfinished_ += TilesOf(layer.output, p);
  }
}

// Some panels times one block of columns, then the next block, so that its weights stay in the
// cache. The panels end where a sequence does, for it can attend then. One whose items must be
// gathered stands alone, so that its worker gathers them once.
void AttentionJob::PlanPanels() {
  const PackedBatch& packed = batch_.packed();
  const RowCut cut = batch_.panels();
  panels_.resize(cut.count());
  for (int64_t p = 0; p < cut.count(); ++p) {
    panels_[p].first_sequence = packed.sequence_of_row(cut.first(p));
    panels_[p].last_sequence = packed.sequence_of_row(cut.first(p) + cut.rows(p) - 1);
    panels_[p].in_place = !batch_.ItemsInPlace(p).empty();
  }
  const auto goes_on = [&](int64_t p) {  // a sequence, in panel p + 1
    return packed.offsets()[panels_[p].first_sequence + 1] > cut.first(p + 1);
  };
  for (int64_t first = 0, end = 0; first < cut.count(); first = end) {
    do {
      ++end;
    } while (end < cut.count() && end - first < kPanelsTogether && goes_on(end - 1) &&
             panels_[end - 1].in_place && panels_[end].in_place);
    panels_[first].alone = end == first + 1;
    AppendTiles(batch_.layer().projections, first, end, &projections_);
  }
}

std::pair<int64_t, int64_t> AttentionJob::PanelsOf(int64_t b) const {
  const auto offsets = batch_.packed().offsets();
  return {batch_.panels().piece_of(offsets[b]), batch_.panels().piece_of(offsets[b + 1] - 1)};
}

// A panel that stands alone takes several blocks at a time: it would not find their weights in the
// cache again, so fewer calls are better.
int64_t AttentionJob::BlocksPerTile(const PackedWeights& weights, int64_t panel) const {
  return panels_[panel].alone ? weights.BlocksTogether(batch_.panels().rows(panel)) : 1;
}

int64_t AttentionJob::TilesOf(const PackedWeights& weights, int64_t panel) const {
  const int64_t together = BlocksPerTile(weights, panel);
  return (weights.num_blocks() + together - 1) / together;
}

void AttentionJob::AppendTiles(const PackedWeights& weights, int64_t first_panel, int64_t end_panel,
                               std::vector<int32_t>* tiles) const {
  for (int64_t block = 0; block < weights.num_blocks(); ++block) {
    for (int64_t p = first_panel; p < end_panel; ++p) {
      if (block % BlocksPerTile(weights, p) != 0) continue;
      tiles->push_back(static_cast<int32_t>(p * weights.num_blocks() + block));
    }
  }
}

PackedWeights::Block AttentionJob::ColumnsOf(const PackedWeights& weights, int32_t index) const {
  const int64_t panel = index / weights.num_blocks();
  return weights.Blocks(index % weights.num_blocks(), BlocksPerTile(weights, panel));
}

bool AttentionJob::Claim(Tile* tile) {
  if (runnable_ == 0) return false;
  --runnable_;
  const AttentionLayer& layer = batch_.layer();
  const AttentionConfig& c = layer.config;
  // `outputs` of the padded columns are the model's.
  const auto flop = [&](const PackedWeights& weights, int32_t index, int64_t inputs,
                        int64_t outputs) {
    const int64_t rows = batch_.panels().rows(index / weights.num_blocks());
    const double share = static_cast<double>(ColumnsOf(weights, index).columns) / weights.columns();
    return 2.0 * rows * inputs * outputs * share;
  };
  if (first_out_ < out_ready_.size()) {
    const int32_t index = out_ready_[first_out_++];
    *tile = {kProjectOut, index,
             flop(layer.output, index, c.num_heads * c.d_v, layer.layout.d_out)};
    return true;
  }
  if (!suspended_.empty() || first_ready_ < ready_.size()) {
    ClaimUnits(tile);
    return true;
  }
  const int32_t index = projections_[next_projection_++];
  const int64_t outputs = c.num_heads * c.d_k + c.num_key_heads * (c.d_k + c.d_v);
  *tile = {kProject, index, flop(layer.projections, index, c.d_f, outputs)};
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
    const int64_t panel = tile.index / layer.projections.num_blocks();
    ProjectPanel(batch_, panel, ColumnsOf(layer.projections, tile.index), workspace);
  } else if (tile.kind == kProjectOut) {
    const int64_t panel = tile.index / layer.output.num_blocks();
    ProjectPanelOut(batch_, panel, ColumnsOf(layer.output, tile.index), workspace);
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
  const auto [first, last] = PanelsOf(b);
  const size_t before = out_ready_.size();
  for (int64_t p = first, waiting = first; p <= last + 1; ++p) {
    const bool free = p <= last && --panels_[p].sequences_left == 0;
    if (free) continue;
    AppendTiles(batch_.layer().output, waiting, p, &out_ready_);
    waiting = p + 1;
  }
  return static_cast<int64_t>(out_ready_.size() - before);
}

}  // namespace attend

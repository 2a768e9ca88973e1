// Which tile of a batch may be computed when.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/attention_attend.h"
#include "core/attention_batch.h"
#include "core/job.h"

namespace attend {

// Tiles of three kinds: project (a panel of the batch's rows, a block of columns), attend (a unit
// of one sequence's queries, or some of its visits where they take too long), project out (as
// project). A sequence's attend tiles wait for the panels that hold its rows, an output panel for
// the sequences that have rows in it. What ends a sequence goes before what begins one.
class AttentionJob : public Job {
 public:
  // Throws std::bad_alloc. `layer` outlives the job.
  AttentionJob(const AttentionLayer& layer, PackedBatch batch, SequenceDone done);

  int64_t runnable() const override { return runnable_; }
  bool Claim(Tile* tile) override;
  void Run(const Tile& tile, Workspace& workspace) override;
  void Fail(const Tile& tile, const absl::Status& status) override;
  int64_t Finish(const Tile& tile) override;
  bool exhausted() const override { return unfinished_ == 0; }
  void Cancel(int64_t b) override { batch_.Cancel(b); }

 private:
  enum Kind : int32_t { kProject, kAttend, kProjectOut };

  // A unit that some worker has begun. One that waits between two tiles is claimed before a new one
  // is begun, so there are never more than there are workers.
  struct OpenWalk {
    QueryWalk walk;
    int64_t next_visit = 0;
    FloatBuffer state;  // empty until a walk of several tiles needs it

    bool on_last_tile() const { return next_visit + walk.visits_per_tile() >= walk.visits(); }
  };
  struct Panel {
    int64_t first_sequence = 0, last_sequence = 0;  // that have rows in it, both included
    int64_t sequences_left = 0;                     // whose attend tiles an output panel waits for
    bool in_place = false;                          // its items need not be gathered
    bool alone = false;                             // not projected together with others
  };
  struct Progress {
    int64_t projections_left = 0;
    int64_t units_left = 0;
  };
  struct ReadyUnits {
    int64_t b = 0, next = 0;
  };

  void Plan();
  void PlanPanels();
  std::pair<int64_t, int64_t> PanelsOf(int64_t b) const;  // first and last
  int64_t BlocksPerTile(const PackedWeights& weights, int64_t panel) const;
  int64_t TilesOf(const PackedWeights& weights, int64_t panel) const;
  void AppendTiles(const PackedWeights& weights, int64_t first_panel, int64_t end_panel,
                   std::vector<int32_t>* tiles) const;
  PackedWeights::Block ColumnsOf(const PackedWeights& weights, int32_t index) const;
  int32_t OpenNextUnit();
  void ClaimUnits(Tile* tile);
  int64_t FinishProjection(int64_t panel);
  int64_t FinishUnits(int32_t index);
  int64_t FinishSequence(int64_t b);
  void SequencesDone(const Tile& tile);

  AttentionBatch batch_;
  std::vector<Panel> panels_;
  std::vector<Progress> progress_;    // of each sequence
  std::vector<int32_t> projections_;  // tiles in the order they are claimed
  size_t next_projection_ = 0;
  std::vector<ReadyUnits> ready_;   // sequences whose rows are projected; those before
  size_t first_ready_ = 0;          // first_ready_ are begun wholly
  std::vector<int32_t> out_ready_;  // tiles of output panels
  size_t first_out_ = 0;
  // As long from the start as it can ever be: Run reads its own entry while Claim makes another.
  std::vector<std::unique_ptr<OpenWalk>> walks_;
  int32_t num_walks_ = 0;
  std::vector<int32_t> suspended_, free_;  // of walks_
  int64_t runnable_ = 0;
  int64_t unfinished_ = 0;  // tiles
};

}  // namespace attend

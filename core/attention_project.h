// The linear ends of the layer: q, k and v of a panel of items, and the output projection.
#pragma once

#include <cstdint>

#include "core/attention_batch.h"
#include "core/workspace.h"

namespace attend {

// Slots of the workspace that the tiles of an attention layer share.
enum AttentionSlot : int {
  kPanelSlot,    // rows that are multiplied
  kProductSlot,  // what comes out
  kScoresSlot,
  kStateSlot,
  kSumSlot,
  kRowSlot,
};

// q_i = Wq x_i + bq, k_j = Wk x_j + bk, v_j = Wv x_j + bv for one panel of rows and one block of
// the projections' columns, laid out as attention reads them. A sequence with a number that leaves
// float32 fails with INVALID_ARGUMENT naming the item and the head; where oneDNN fails, the panel's
// sequences do, with INTERNAL. Throws std::bad_alloc.
void ProjectPanel(AttentionBatch& batch, int64_t panel, const PackedWeights::Block& columns,
                  Workspace& workspace);

// values_i = Wo y_i + bo for one panel and one block of columns, into the sequences' outputs.
void ProjectPanelOut(AttentionBatch& batch, int64_t panel, const PackedWeights::Block& columns,
                     Workspace& workspace);

}  // namespace attend

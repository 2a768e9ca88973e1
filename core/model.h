// What a model is to everyone above the core.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/packed_batch.h"
#include "core/sequence.h"

namespace attend {

// What a caller may know of a model. Shapes in letters as in core/sequence.h.
struct ModelInfo {
  std::string kind;  // "attention"
  int64_t d_f = 0, d_k = 0, d_v = 0, d_out = 0;
  int64_t num_heads = 0, num_key_heads = 0;
  std::string normalizer;
  float scale = 0;
  bool causal = false;
  int64_t max_sequence_length = 65536;
  std::vector<std::string> feature_names;                               // [d_f] or empty
  std::vector<std::pair<std::string, std::vector<float>>> item_names;   // name, [d_f]
};

// Called once for every sequence b of a batch, on a worker, as soon as its own last tile is done:
// the output, or INVALID_ARGUMENT (its numbers left float32; names item and head), CANCELLED, or
// INTERNAL. Must not block.
using SequenceDone = std::function<void(int64_t b, absl::StatusOr<SequenceOutput> output)>;

// Immutable once loaded; every method may be called from any thread.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  // INVALID_ARGUMENT naming the field, what came and what was expected, when the sequence's shapes,
  // masks or numbers are not what Forward accepts. Reads every number once.
  virtual absl::Status Check(const SequenceInput& sequence) const = 0;
  // FLOP of a sequence of N items: linear terms of the projections and the quadratic one of
  // attention. Monotone in N.
  virtual double Cost(int64_t num_items, bool causal) const = 0;
  // Turns a batch of checked sequences into work. The model must outlive the job.
  // RESOURCE_EXHAUSTED when its memory can't be had; `done` is then never called.
  virtual absl::StatusOr<std::shared_ptr<Job>> Forward(PackedBatch batch,
                                                       SequenceDone done) const = 0;
};

}  // namespace attend

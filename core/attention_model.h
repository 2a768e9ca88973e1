// One attention layer as a Model.
#pragma once

#include <memory>

#include "core/attention_batch.h"
#include "core/model.h"

namespace attend {

class AttentionModel : public Model {
 public:
  explicit AttentionModel(std::unique_ptr<const AttentionLayer> layer);

  const ModelInfo& info() const override { return info_; }
  absl::Status Check(const SequenceInput& sequence) const override;
  double Cost(int64_t num_items, bool causal) const override;
  absl::StatusOr<std::shared_ptr<Job>> Forward(PackedBatch batch, SequenceDone done) const override;

 private:
  const std::unique_ptr<const AttentionLayer> layer_;
  ModelInfo info_;
};

}  // namespace attend

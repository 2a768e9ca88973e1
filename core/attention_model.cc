#include "core/attention_model.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <utility>

#include "core/attention_check.h"
#include "core/attention_job.h"
#include "core/simd_rows.h"

namespace attend {
namespace {

const char* NormalizerName(Normalizer normalizer) {
  constexpr const char* kNames[] = {"softmax", "softmax_one", "sigmoid",
                                    "relu",    "sparsemax",   "none"};
  return kNames[static_cast<int>(normalizer)];
}

}  // namespace

AttentionModel::AttentionModel(std::unique_ptr<const AttentionLayer> layer)
    : layer_(std::move(layer)) {
  const AttentionConfig& c = layer_->config;
  info_.kind = "attention";
  info_.d_f = c.d_f;
  info_.d_k = c.d_k;
  info_.d_v = c.d_v;
  info_.d_out = layer_->layout.d_out;
  info_.num_heads = c.num_heads;
  info_.num_key_heads = c.num_key_heads;
  info_.normalizer = NormalizerName(c.normalizer);
  info_.scale = c.scale;
  info_.causal = c.causal;
  info_.max_sequence_length = c.max_sequence_length;
  info_.feature_names = c.feature_names;
  info_.item_names = c.item_names;
}

absl::Status AttentionModel::Check(const SequenceInput& sequence) const {
  return CheckSequence(layer_->config, sequence);
}

double AttentionModel::Cost(int64_t num_items, bool causal) const {
  const AttentionConfig& c = layer_->config;
  const double n = num_items;
  const double pairs = causal || c.causal ? n * (n + 1) / 2 : n * n;
  double per_item = c.d_f * (c.num_heads * c.d_k + c.num_key_heads * (c.d_k + c.d_v));
  if (layer_->layout.has_output) per_item += c.num_heads * c.d_v * layer_->layout.d_out;
  return 2 * (n * per_item + pairs * c.num_heads * (c.d_k + c.d_v));
}

absl::StatusOr<std::shared_ptr<Job>> AttentionModel::Forward(PackedBatch batch,
                                                             SequenceDone done) const {
  const int64_t items = batch.num_items();
  try {
    return std::make_shared<AttentionJob>(*layer_, std::move(batch), std::move(done));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the numbers of a batch of ", items,
                     " items; send shorter sequences, or ask for values alone"));
  }
}

absl::StatusOr<std::unique_ptr<Model>> MakeAttentionModel(AttentionConfig config,
                                                          AttentionWeights weights) {
  if (absl::Status status = CheckParameters(config, weights); !status.ok()) return status;
  LimitSimdLanes(PackLanes());
  auto layer = std::make_unique<AttentionLayer>();
  layer->layout = AttentionLayout(config, weights);
  const AttentionLayout& layout = layer->layout;

  PackedWeights& in = layer->projections;
  in = PackedWeights({1, config.d_f, layout.input}, layout.projected_columns());
  const auto place = [&](const FloatBuffer& weight, const FloatBuffer& bias,
                         const PaddedAxis& outputs, int64_t first) {
    in.Place({weight.data(), outputs.groups * outputs.size, config.d_f}, bias, outputs, first);
  };
  place(weights.query_weight, weights.query_bias, {layout.heads, config.d_k, layout.key}, 0);
  place(weights.key_weight, weights.key_bias, {layout.key_heads, config.d_k, layout.key},
        layout.query_columns());
  place(weights.value_weight, weights.value_bias, {layout.key_heads, config.d_v, layout.value},
        layout.query_columns() + layout.key_columns());
  if (absl::Status status = in.Prove(); !status.ok()) return status;

  if (layout.has_output) {
    PackedWeights& out = layer->output;
    const int64_t width = layout.heads * config.d_v, columns = RoundUp(layout.d_out, layout.lanes);
    out = PackedWeights({layout.heads, config.d_v, layout.slot}, columns);
    out.Place({weights.output_weight.data(), layout.d_out, width}, weights.output_bias,
              {1, layout.d_out, columns}, 0);
    if (absl::Status status = out.Prove(); !status.ok()) return status;
  }
  layer->config = std::move(config);
  return std::make_unique<AttentionModel>(std::move(layer));
}

}  // namespace attend

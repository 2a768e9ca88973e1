#include "core/attention_head.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

#include "core/attention_project.h"

namespace attend {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

int64_t CountAllowed(const SequenceInput& input, bool causal, int64_t i) {
  const int64_t keys = causal ? i + 1 : input.num_items();
  int64_t count = 0;
  for (int64_t j = 0; j < keys; ++j) {
    count += (input.key_mask.empty() || input.key_mask[j] != 0) &&
             (input.attention_mask.empty() || input.attention_mask.row(i)[j] != 0) &&
             (input.attention_bias.empty() || input.attention_bias.row(i)[j] != kMinusInfinity);
  }
  return count;
}

// Softmax scales what it takes the exponential of, so where nothing is added to the products or
// masked they are read, not rewritten. (A scale above 1 might overflow.)
bool KeepsProducts(const AttentionConfig& config, const SequenceInput& input) {
  const bool softmax =
      config.normalizer == Normalizer::kSoftmax || config.normalizer == Normalizer::kSoftmaxOne;
  return softmax && config.scale > 0 && config.scale <= 1 && input.key_mask.empty() &&
         input.attention_mask.empty() && input.attention_bias.empty();
}

}  // namespace

HeadWalk::HeadWalk(AttentionBatch& batch, const QueryWalk& walk, int64_t head, float* state,
                   Workspace& workspace)
    : batch_(batch),
      walk_(walk),
      head_(head),
      key_head_(head / batch.layout().queries_per_key_head()),
      normalizer_(batch.layer().config.normalizer),
      input_(batch.packed().sequence(walk.b())),
      sequence_(batch.sequence(walk.b())),
      keeps_products_(KeepsProducts(batch.layer().config, input_)),
      wants_pairs_(input_.want_scores || input_.want_weights),
      row_scale_(keeps_products_ ? batch.layer().config.scale : 1),
      workspace_(workspace) {
  const AttentionLayout& layout = batch.layout();
  maximum_ = state;
  sum_ = maximum_ + kMostRows;
  queries_ = sum_ + kMostRows;
  y_ = queries_ + walk.height() * layout.key;
  kept_scores_ = y_ + walk.height() * layout.value;
}

void HeadWalk::Begin() {
  const AttentionLayout& layout = batch_.layout();
  const int64_t first_row = batch_.packed().offsets()[walk_.b()] + walk_.first_item();
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    std::copy_n(batch_.row(first_row + r) + head_ * layout.slot, layout.key,
                queries_ + r * layout.key);
  }
  std::fill(queries_ + walk_.rows() * layout.key, queries_ + walk_.height() * layout.key, 0.0f);

  // softmax_one is softmax with one more key whose score and value are 0.
  const bool one = normalizer_ == Normalizer::kSoftmaxOne;
  std::fill_n(maximum_, kMostRows, one ? 0.0f : kMinusInfinity);
  std::fill_n(sum_, kMostRows, one ? 1.0f : 0.0f);
  for (int64_t r = 0; r < walk_.rows() && normalizer_ == Normalizer::kRelu; ++r) {
    const int64_t n = CountAllowed(input_, sequence_.causal, walk_.first_item() + r);
    sum_[r] = n > 0 ? 1.0f / static_cast<float>(n) : 0.0f;
  }
}

bool HeadWalk::Visit(int64_t visit) {
  const int64_t block = visit % walk_.blocks(), width = sequence_.blocks.padded(block);
  const bool scores = visit < walk_.blocks(), weighs = !two_passes() || !scores;
  float* rows = BlockScores(block);
  alignas(64) float factors[kMostRows], sums[kMostRows];
  std::copy_n(maximum_, kMostRows, factors);
  if (scores) {
    Multiply({walk_.height(), batch_.layout().key, width}, queries_,
             batch_.keys(walk_.b(), block, key_head_), rows);
  } else if (block == 0) {
    SolveSparsemax();
  }
  // Row by row, so that a row is in the first cache for all that happens to it.
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    float* row = rows + r * width;
    if (keeps_products_ && !wants_pairs_) {
      if (!ScoreAndWeigh(block, r, row, &sums[r])) return false;
      continue;
    }
    if (scores && !Score(block, r, row)) return false;
    if (weighs) sums[r] = Weigh(row, width, r);
  }
  if (!weighs) return true;
  Rescale(factors, sums);
  if (input_.want_values) AddValues(block, rows, factors);
  return true;
}

float* HeadWalk::BlockScores(int64_t block) {
  if (two_passes()) return kept_scores_ + walk_.height() * sequence_.blocks.first(block);
  return workspace_.Floats(kScoresSlot, walk_.height() * sequence_.blocks.padded(block));
}

bool HeadWalk::Score(int64_t block, int64_t r, float* row) {
  const ScoreRow input = RowInput(block, r, row);
  const ScoreRowResult result =
      keeps_products_ ? ScanProducts(row, input.width, input.limit) : FinishScores(input);
  if (!result.finite) {
    FailAt(r, "a score");
    return false;
  }
  maximum_[r] = std::max(maximum_[r], result.maximum);
  KeepWanted(block, r, row);
  return true;
}

// Score and Weigh in one, with the same bits.
bool HeadWalk::ScoreAndWeigh(int64_t block, int64_t r, float* row, float* sum) {
  const SoftmaxRowResult result = SoftmaxProducts(row, sequence_.blocks.padded(block),
                                                  KeyLimit(block, r), maximum_[r], row_scale_);
  maximum_[r] = result.maximum;
  *sum = result.sum;
  if (!result.finite) FailAt(r, "a score");
  return result.finite;
}

// Keys of the block that causality leaves to query r.
int64_t HeadWalk::KeyLimit(int64_t block, int64_t r) const {
  const int64_t keys = sequence_.blocks.keys(block);
  if (!sequence_.causal) return keys;
  return std::clamp(walk_.first_item() + r + 1 - sequence_.blocks.first(block), int64_t{0}, keys);
}

ScoreRow HeadWalk::RowInput(int64_t block, int64_t r, float* scores) const {
  const int64_t first = sequence_.blocks.first(block), i = walk_.first_item() + r;
  ScoreRow row;
  row.scores = scores;
  row.width = sequence_.blocks.padded(block);
  row.limit = KeyLimit(block, r);
  row.scale = batch_.layer().config.scale;
  if (!input_.attention_bias.empty()) row.bias = input_.attention_bias.row(i) + first;
  if (!input_.attention_mask.empty()) row.mask = input_.attention_mask.row(i) + first;
  if (!input_.key_mask.empty()) row.key_mask = input_.key_mask.data() + first;
  return row;
}

float* HeadWalk::PairRow(FloatBuffer& pairs, int64_t r) const {
  const int64_t n = input_.num_items();
  return pairs.data() + (head_ * n + walk_.first_item() + r) * n;
}

// What the caller wants of the pairs is put by as scores; FinishWanted makes weights of them.
void HeadWalk::KeepWanted(int64_t block, int64_t r, const float* scores) {
  const int64_t first = sequence_.blocks.first(block), keys = sequence_.blocks.keys(block);
  if (input_.want_scores) {
    std::transform(scores, scores + keys, PairRow(sequence_.output.scores, r) + first,
                   [scale = row_scale_](float s) { return scale * s; });
  }
  if (input_.want_weights) {
    std::copy_n(scores, keys, PairRow(sequence_.output.weights, r) + first);
  }
}

// Newton's method on sum_j max(s_ij - m - t, 0) = 1 from t = -1 rises to the root in as many steps
// as the support shrinks.
void HeadWalk::SolveSparsemax() {
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    if (maximum_[r] == kMinusInfinity) continue;
    float threshold = -2;
    for (float next = -1; next > threshold;) {
      threshold = next;
      SparsemaxSupport support;
      for (int64_t block = 0; block < walk_.blocks(); ++block) {
        const int64_t width = sequence_.blocks.padded(block);
        AddSparsemaxSupport(BlockScores(block) + r * width, width, maximum_[r], threshold,
                            &support);
      }
      next = (support.sum - 1) / support.count;
    }
    sum_[r] = threshold;
  }
}

// What the earlier blocks gave is worth less where this one has raised the maximum.
void HeadWalk::Rescale(float* factors, const float* sums) {
  if (!softmax()) {
    std::fill_n(factors, kMostRows, 1.0f);
    return;
  }
  RescaleFactors(factors, maximum_, kMostRows, row_scale_);
  for (int64_t r = 0; r < walk_.rows(); ++r) sum_[r] = sum_[r] * factors[r] + sums[r];
}

// Turns a row of scores into weights. Softmax's are still to be divided by their sum, whose share
// of this row is returned.
float HeadWalk::Weigh(float* row, int64_t width, int64_t r) const {
  if (maximum_[r] == kMinusInfinity) {
    std::fill_n(row, width, 0.0f);
    return 0;
  }
  switch (normalizer_) {
    case Normalizer::kSoftmax:
    case Normalizer::kSoftmaxOne:
      return ExpRow(row, width, maximum_[r], row_scale_);
    case Normalizer::kSigmoid:
      SigmoidRow(row, width);
      break;
    case Normalizer::kRelu:
      ReluRow(row, width, sum_[r]);
      break;
    case Normalizer::kSparsemax:
      SparsemaxRow(row, width, maximum_[r], sum_[r]);
      break;
    case Normalizer::kNone:
      NoneRow(row, width);
      break;
  }
  return 0;
}

void HeadWalk::AddValues(int64_t block, const float* weights, const float* factors) {
  const int64_t columns = batch_.layout().value;
  const ProductShape shape{walk_.height(), sequence_.blocks.padded(block), columns};
  const float* values = batch_.values(walk_.b(), block, key_head_);
  if (block == 0) return Multiply(shape, weights, values, y_);
  float* addend = workspace_.Floats(kSumSlot, walk_.height() * columns);
  Multiply(shape, weights, values, addend);
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    MergeRow(y_ + r * columns, addend + r * columns, columns, factors[r]);
  }
}

void HeadWalk::End() {
  if (input_.want_values) StoreValues();
  if (wants_pairs_) FinishWanted();
}

float HeadWalk::FinalFactor(int64_t r) const {
  if (!softmax()) return 1;
  return sum_[r] > 0 ? 1 / sum_[r] : 0;
}

void HeadWalk::StoreValues() {
  const AttentionLayout& layout = batch_.layout();
  const int64_t first_row = batch_.packed().offsets()[walk_.b()] + walk_.first_item();
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    float* y = y_ + r * layout.value;
    float* slot = batch_.row(first_row + r) + head_ * layout.slot;
    if (!FinishRow(y, layout.value, FinalFactor(r), layout.has_output ? slot : y)) {
      return FailAt(r, "the result");
    }
    if (layout.has_output) {
      std::fill(slot + layout.value, slot + layout.slot, 0.0f);
    } else {
      std::copy_n(y, layout.d_v,
                  sequence_.output.values.data() +
                      ((walk_.first_item() + r) * layout.heads + head_) * layout.d_v);
    }
  }
}

// The rows that were put by end with -inf where causality left blocks out.
void HeadWalk::FinishWanted() {
  const int64_t n = input_.num_items();
  const int64_t seen = std::min(n, walk_.blocks() * sequence_.blocks.size);
  float* chunk = workspace_.Floats(kRowSlot, sequence_.blocks.size);
  for (int64_t r = 0; r < walk_.rows(); ++r) {
    if (input_.want_scores) {
      float* row = PairRow(sequence_.output.scores, r);
      std::fill(row + seen, row + n, kMinusInfinity);
    }
    if (!input_.want_weights) continue;
    float* row = PairRow(sequence_.output.weights, r);
    for (int64_t block = 0; block < walk_.blocks(); ++block) {
      const int64_t keys = sequence_.blocks.keys(block), width = sequence_.blocks.padded(block);
      float* part = row + sequence_.blocks.first(block);
      std::fill(std::copy_n(part, keys, chunk), chunk + width, kMinusInfinity);
      Weigh(chunk, width, r);
      FinishRow(chunk, width, FinalFactor(r), chunk);
      std::copy_n(chunk, keys, part);
    }
    std::fill(row + seen, row + n, 0.0f);
  }
}

void HeadWalk::Multiply(const ProductShape& shape, const float* a, const float* b, float* c) {
  const auto product = GetProduct(shape);
  absl::Status status = product.status();
  if (status.ok()) status = (*product)->Run(a, b, c, workspace_);
  if (!status.ok()) batch_.Fail(walk_.b(), status);
}

void HeadWalk::FailAt(int64_t r, const char* what) {
  batch_.Fail(walk_.b(),
              absl::InvalidArgumentError(absl::StrCat(
                  "items: ", what, " of item ", walk_.first_item() + r, " in head ", head_,
                  " leaves float32; scale the items or the model's weights "
                  "down")));
}

}  // namespace attend

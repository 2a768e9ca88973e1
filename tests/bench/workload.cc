#include "tests/bench/workload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/onednn_runtime.h"
#include "tests/bench/measure.h"

namespace attend::bench {
namespace {

constexpr int32_t kAttendKind = 1;  // of AttentionJob's tiles

}  // namespace

Workload::Workload(const LayerSize& size, const std::vector<int64_t>& lengths, bool causal) {
  InitComputeThread();
  Random random(1);
  const int64_t d = size.d_f / size.heads;
  const RandomLayer layer = MakeRandomLayer(random, {.d_f = size.d_f,
                                                     .d_k = d,
                                                     .d_v = d,
                                                     .heads = size.heads,
                                                     .key_heads = size.heads,
                                                     .d_out = size.output ? size.d_f : 0});
  model_ = layer.Make();
  for (int64_t n : lengths) {
    sequences_.emplace_back(random, n, size.d_f);
    sequences_.back().input().causal = causal;
    items_ += n;
    flop_ += model_->Cost(n, causal);
  }
}

std::shared_ptr<Job> Workload::Start() const {
  std::vector<SequenceInput> inputs;
  for (const RandomSequence& s : sequences_) inputs.push_back(s.input());
  auto job = model_->Forward(PackedBatch(std::move(inputs)),
                             [](int64_t, absl::StatusOr<SequenceOutput> output) {
                               if (output.ok()) return;
                               fprintf(stderr, "%s\n", output.status().ToString().c_str());
                               std::abort();
                             });
  if (!job.ok()) {
    fprintf(stderr, "%s\n", job.status().ToString().c_str());
    std::abort();
  }
  return *std::move(job);
}

double Workload::RunTiles(bool attend_alone) {
  const double start = ThreadNow();
  double attend = 0;
  const auto job = Start();
  for (Tile tile; job->Claim(&tile);) {
    const double begun = attend_alone ? ThreadNow() : 0;
    job->Run(tile, workspace_);
    if (attend_alone && tile.kind == kAttendKind) attend += ThreadNow() - begun;
    job->Finish(tile);
  }
  return attend_alone ? attend : ThreadNow() - start;
}

double Workload::RunHere() { return RunTiles(false); }
double Workload::RunAttendTiles() { return RunTiles(true); }

double Workload::RunOn(Executor& executor) const {
  const double start = Now();
  executor.Submit(Start(), {}, flop_);
  executor.WaitIdle();
  return Now() - start;
}

std::vector<int64_t> MixedLengths(int64_t count) {
  Random random(20);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    const double n = std::exp(std::log(90.0) + random.Normal(0.9f));
    lengths.push_back(std::clamp(static_cast<int64_t>(n), int64_t{8}, int64_t{512}));
  }
  return lengths;
}

}  // namespace attend::bench

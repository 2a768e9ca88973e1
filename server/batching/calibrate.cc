#include "server/batching/calibrate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/executor.h"

namespace attend {
namespace {

// Part of a tile, a tile, several, and enough for the quadratic term to show.
constexpr int64_t kLengths[] = {1, 16, 64, 256, 1024};
// Of each length the fastest run counts: the others were disturbed, the first by its set-up.
constexpr int kRuns = 4;
// A length that alone takes so long says enough in two runs, and larger ones are left out.
constexpr std::chrono::milliseconds kLongRun{100};

absl::Status RunOnce(const Model& model, const SequenceInput& input, Executor& executor) {
  absl::Status status;
  auto job = model.Forward(
      PackedBatch({input}),
      [&](int64_t, const absl::StatusOr<SequenceOutput>& output) { status = output.status(); });
  if (!job.ok()) return job.status();
  executor.Submit(*std::move(job), Rank{}, 0);
  executor.WaitIdle();
  return status;
}

}  // namespace

absl::StatusOr<CostCurve> Calibrate(const Model& model,
                                    const std::function<Clock::time_point()>& now) {
  const ModelInfo& info = model.info();
  const int64_t longest = std::min(info.max_sequence_length, *std::rbegin(kLengths));
  std::vector<float> items(info.d_f * longest);
  // Equal items attend to each other equally; zeros would be faster than any caller's numbers where
  // they make weights exactly zero.
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<float>(i % 17) / 16 - 0.5f;

  Executor executor({.threads = 1});
  std::vector<CostSample> samples;
  for (const int64_t length : kLengths) {
    if (length > longest) break;
    SequenceInput input;
    input.items = {items.data(), length, info.d_f};
    Clock::duration fastest = Clock::duration::max();
    for (int run = 0; run < kRuns && !(run >= 2 && fastest > kLongRun); ++run) {
      const Clock::time_point start = now();
      if (absl::Status status = RunOnce(model, input, executor); !status.ok()) return status;
      fastest = std::min(fastest, now() - start);
    }
    const double seconds = std::chrono::duration<double>(fastest).count();
    if (seconds > 0) samples.push_back({length, seconds});
    if (fastest > kLongRun) break;
  }
  return samples.empty() ? GuessCostCurve(model) : FitCostCurve(samples);
}

}  // namespace attend

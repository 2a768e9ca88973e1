#include "server/warm_up.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/mutex.h"

namespace attend {
namespace {

// One item, part of a tile, several tiles.
constexpr int64_t kLengths[] = {1, 40, 200};

}  // namespace

absl::Status WarmUp(const Model& model) {
  const ModelInfo& info = model.info();
  std::vector<float> items(info.d_f * *std::max_element(std::begin(kLengths), std::end(kLengths)));
  std::vector<SequenceInput> sequences;
  for (const int64_t length : kLengths) {
    if (length > info.max_sequence_length) continue;
    SequenceInput& input = sequences.emplace_back();
    input.items = {items.data(), length, info.d_f};
  }
  Mutex mutex;
  absl::Status outcome;
  auto job = model.Forward(PackedBatch(std::move(sequences)),
                           [&](int64_t, const absl::StatusOr<SequenceOutput>& output) {
                             MutexLock lock(&mutex);
                             outcome.Update(output.status());
                           });
  if (!job.ok()) return job.status();
  Executor executor(ExecutorOptions{});
  executor.Submit(*std::move(job), Rank{}, 0);
  executor.WaitIdle();
  MutexLock lock(&mutex);
  return outcome;
}

}  // namespace attend

// Runs a batch on the calling thread, without an executor: the same tiles in an order that a test
// chooses.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <random>
#include <vector>

#include "core/model.h"
#include "core/onednn_runtime.h"
#include "core/workspace.h"

namespace attend {

using Answers = std::vector<absl::StatusOr<SequenceOutput>>;

// Up to `in_flight` tiles are claimed before one of them, picked by `seed`, is run: what several
// workers might do.
struct RunOrder {
  int in_flight = 1;
  uint32_t seed = 1;
};

inline void RunJob(Job& job, const RunOrder& order = {}) {
  InitComputeThread();
  Workspace workspace;
  std::mt19937 random(order.seed);
  std::vector<Tile> claimed;
  while (!job.exhausted()) {
    Tile tile;
    while (static_cast<int>(claimed.size()) < order.in_flight && job.Claim(&tile)) {
      claimed.push_back(tile);
    }
    std::swap(claimed[random() % claimed.size()], claimed.back());
    tile = claimed.back();
    claimed.pop_back();
    job.Run(tile, workspace);
    job.Finish(tile);
  }
}

// One answer for every sequence, in their order; INTERNAL where `done` was never called or twice.
inline Answers RunBatch(const Model& model, std::vector<SequenceInput> sequences,
                        const RunOrder& order = {}) {
  Answers answers(sequences.size());
  std::vector<int> calls(sequences.size(), 0);
  const auto job = model.Forward(PackedBatch(std::move(sequences)),
                                 [&](int64_t b, absl::StatusOr<SequenceOutput> output) {
                                   answers[b] = std::move(output);
                                   ++calls[b];
                                 });
  if (!job.ok()) {
    for (auto& answer : answers) answer = job.status();
    return answers;
  }
  RunJob(**job, order);
  for (size_t b = 0; b < answers.size(); ++b) {
    if (calls[b] != 1) answers[b] = absl::InternalError("completed " + std::to_string(calls[b]));
  }
  return answers;
}

}  // namespace attend

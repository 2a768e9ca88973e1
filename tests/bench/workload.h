// Layers and requests of the benchmarks, and how they are run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/executor.h"
#include "core/model.h"
#include "core/workspace.h"
#include "tests/core/random_layer.h"

namespace attend::bench {

struct LayerSize {
  int64_t d_f = 768, heads = 12;
  bool output = true;
};

// One layer and one batch of sequences for it.
class Workload {
 public:
  Workload(const LayerSize& size, const std::vector<int64_t>& lengths, bool causal = false);

  double flop() const { return flop_; }
  int64_t items() const { return items_; }
  const Model& model() const { return *model_; }
  std::shared_ptr<Job> Start() const;
  // Seconds of the whole batch on the calling thread.
  double RunHere();
  // The same on an executor's workers.
  double RunOn(Executor& executor) const;
  // Seconds of the attend tiles alone, on the calling thread.
  double RunAttendTiles();

 private:
  double RunTiles(bool attend_alone);

  std::unique_ptr<Model> model_;
  std::vector<RandomSequence> sequences_;
  Workspace workspace_;
  double flop_ = 0;
  int64_t items_ = 0;
};

// Log-normal lengths within 8..512, the same at every run.
std::vector<int64_t> MixedLengths(int64_t count);

}  // namespace attend::bench

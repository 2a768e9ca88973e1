// A request between its decoding and its answer.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/sequence.h"
#include "server/batching/model_registry.h"

namespace attend {

using Clock = std::chrono::steady_clock;

struct RequestTiming {
  std::chrono::microseconds queue{0};    // arrival to the start of the batch that holds it
  std::chrono::microseconds compute{0};  // from there to its own last tile
  int64_t batch_requests = 0;
  int64_t batch_items = 0;
};

struct Answer {
  SequenceOutput output;
  RequestTiming timing;
};

// Called exactly once, outside every lock, on a worker or on the thread that enqueued, cancelled,
// expired or drained the request. Must not block.
using Completion = absl::AnyInvocable<void(absl::StatusOr<Answer>)>;

struct PendingRequest {
  std::string id;
  std::shared_ptr<const ServedModel> model;  // keeps its version alive until the answer
  SequenceInput input;                       // checked by model->model->Check
  std::shared_ptr<const void> storage;       // owns what `input` views
  int64_t bytes = 0;                         // held by storage, for --max-queued-bytes
  Clock::time_point arrival;
  Clock::time_point deadline = Clock::time_point::max();
  uint32_t priority = 0;  // 0 = normal, 1 = highest, then 2, 3 ...
  Completion done;
};

}  // namespace attend

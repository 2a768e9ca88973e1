// What every protocol's handlers share: the models, the queue, the limits.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "server/batching/batcher.h"
#include "server/batching/model_registry.h"
#include "server/rpc/element_type.h"
#include "server/rpc/encoded_sequence.h"
#include "server/rpc/exchange.h"
#include "server/rpc/model_statistics.h"

namespace attend {

// Loading and unloading by a call. Takes as long as a model does, on a thread of its own, which
// then calls `done` once. Thread-safe.
class RepositoryControl {
 public:
  using Done = std::function<void(absl::Status)>;
  virtual ~RepositoryControl() = default;
  virtual void Load(const std::string& model, Done done) = 0;
  virtual void Unload(const std::string& model, Done done) = 0;
};

struct Serving {
  ModelRegistry* registry = nullptr;
  Batcher* batcher = nullptr;
  int64_t max_message_bytes = int64_t{256} << 20;
  const ModelStatistics* statistics = nullptr;
  RepositoryControl* repository = nullptr;  // null: load and unload are refused
  std::string version = {};                 // of the server, as it is told
  int64_t max_call_sequences = 4096;        // of one padded batch: more could never be queued
};

// INVALID_ARGUMENT when a message of `bytes` is above the limit.
absl::Status CheckMessageSize(const Serving& serving, uint64_t bytes);

// NOT_FOUND or INVALID_ARGUMENT by the registry; fills exchange.facts.model on success.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const Serving& serving,
                                                             const std::string& name,
                                                             const std::string& version,
                                                             ExchangeFacts* facts);

// `work` returns a StatusOr; a failed allocation in it becomes RESOURCE_EXHAUSTED.
template <typename Work>
auto WithinMemory(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for this request");
  }
}

struct SequenceOptions {
  ElementType answer_type = ElementType::kF32;
  uint32_t priority = 0;
};

// From described bytes to a request that lacks `done` alone. Checks shapes, the answer's size and
// whether there is room before it allocates and copies; then the model checks the numbers.
absl::StatusOr<PendingRequest> MakeRequest(const Serving& serving, const Exchange& exchange,
                                           std::shared_ptr<const ServedModel> model,
                                           const EncodedSequence& sequence,
                                           const SequenceOptions& options);

}  // namespace attend

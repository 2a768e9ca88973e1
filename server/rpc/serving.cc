#include "server/rpc/serving.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "server/batching/refusal.h"

namespace attend {
namespace {

// What an answer's message has beside the numbers, generously.
constexpr int64_t kAnswerHeaderBytes = 4096;

absl::Status CheckAnswerSize(const EncodedSequence& sequence, const ModelInfo& model,
                             ElementType type, int64_t max_message_bytes) {
  const int64_t elements = AnswerElements(sequence, model);
  if (elements <= (max_message_bytes - kAnswerHeaderBytes) / SizeOf(type)) return absl::OkStatus();
  return Refuse(
      RefusalReason::kTooLarge,
      absl::StrCat("want: the answer would have ", elements, " elements of ", NameOf(type), " for ",
                   sequence.num_items(), " items, the limit is ", max_message_bytes,
                   " bytes (--max-message-bytes); ask for fewer outputs, a smaller answer_dtype "
                   "or fewer items"));
}

}  // namespace

absl::Status CheckMessageSize(const Serving& serving, uint64_t bytes) {
  if (bytes <= static_cast<uint64_t>(serving.max_message_bytes)) return absl::OkStatus();
  return Refuse(RefusalReason::kTooLarge,
                absl::StrCat("the message has ", bytes, " bytes, the limit is ",
                             serving.max_message_bytes, " (--max-message-bytes)"));
}

absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const Serving& serving,
                                                             const std::string& name,
                                                             const std::string& version,
                                                             ExchangeFacts* facts) {
  auto model = serving.registry->Find(name, version);
  if (model.ok()) {
    facts->model = (*model)->name;
    facts->version = (*model)->version;
  }
  return model;
}

absl::StatusOr<PendingRequest> MakeRequest(const Serving& serving, const Exchange& exchange,
                                           std::shared_ptr<const ServedModel> model,
                                           const EncodedSequence& sequence,
                                           const SequenceOptions& options) {
  const ModelInfo& info = model->model->info();
  absl::Status status = CheckShapes(sequence, info);
  if (!status.ok()) return status;
  status = CheckAnswerSize(sequence, info, options.answer_type, serving.max_message_bytes);
  if (!status.ok()) return status;

  PendingRequest request;
  request.bytes =
      DecodedBytes(sequence) + AnswerElements(sequence, info) * static_cast<int64_t>(sizeof(float));
  auto hold = serving.batcher->Admit(request.bytes);
  if (!hold.ok()) return hold.status();
  auto decoded = WithinMemory([&] { return Decode(sequence, *std::move(hold)); });
  if (!decoded.ok()) return decoded.status();
  status = model->model->Check(decoded->input);
  if (!status.ok()) return status;

  request.id = exchange.facts.request_id;
  request.model = std::move(model);
  request.input = decoded->input;
  request.storage = std::move(decoded->storage);
  request.arrival = exchange.arrival;
  request.deadline = exchange.deadline;
  request.priority = options.priority;
  return request;
}

}  // namespace attend

#include <absl/strings/str_cat.h>

#include <atomic>
#include <optional>
#include <utility>

#include "kserve/grpc_service.pb.h"
#include "server/rpc/body.h"
#include "server/rpc/invalid_field.h"
#include "server/rpc/oip_codec.h"
#include "server/rpc/oip_handler.h"

namespace attend {
namespace {

// The sequences of one call: they are computed each for itself and answered together.
class Group {
 public:
  Group(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model,
        InferQuestion question)
      : exchange_(std::move(exchange)),
        model_(std::move(model)),
        question_(std::move(question)),
        answers_(question_.sequences.size()),
        left_(answers_.size()) {}

  // Sequence b is done; the last one answers the call, with the first failure if there is any.
  void Complete(size_t b, absl::StatusOr<Answer> answer) {
    if (answer.ok()) {
      answers_[b] = *std::move(answer);
    } else {
      MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = Named(b, answer.status());
    }
    if (left_.fetch_sub(1) == 1) AnswerCall();
  }
  const InferQuestion& question() const { return question_; }

 private:
  absl::Status Named(size_t b, const absl::Status& status) const {
    if (!question_.batched) return status;
    absl::Status named(status.code(), absl::StrCat("sequence ", b, ": ", status.message()));
    status.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
    return named;
  }
  void AnswerCall() {
    absl::Status failure;
    {
      MutexLock lock(&mutex_);
      failure = failure_;
    }
    if (!failure.ok()) return exchange_->Finish(failure);
    exchange_->Finish(WithinMemory([&]() -> absl::StatusOr<grpc::ByteBuffer> {
      return WriteInferResponse({exchange_->facts.request_id, *model_, question_},
                                std::move(answers_));
    }));
  }

  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<const ServedModel> model_;
  const InferQuestion question_;
  std::vector<Answer> answers_;
  std::atomic<size_t> left_;
  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

ElementType WidestOf(const InferQuestion& question) {
  for (const InferOutput& output : question.outputs) {
    if (output.type == ElementType::kF32) return ElementType::kF32;
  }
  return ElementType::kF16;
}

// A padded answer has rows that no sequence asked for.
absl::Status CheckPaddedSize(const Serving& serving, const InferQuestion& question,
                             const ModelInfo& info) {
  EncodedSequence padded = question.sequences[0];
  padded.items.shape[0] = question.padded_length;
  const double elements = static_cast<double>(AnswerElements(padded, info)) *
                          static_cast<double>(question.sequences.size());
  const double bytes = elements * static_cast<double>(SizeOf(WidestOf(question)));
  if (bytes < static_cast<double>(serving.max_message_bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("outputs: the padded answer would have ", elements, " elements, the limit is ",
                   serving.max_message_bytes, " bytes (--max-message-bytes)"));
}

struct PreparedInfer {
  std::vector<PendingRequest> requests;
  std::shared_ptr<Group> group;
};

absl::StatusOr<PreparedInfer> PrepareInfer(const Serving& serving,
                                           std::shared_ptr<Exchange> exchange) {
  ExchangeFacts& facts = exchange->facts;
  const Body body(exchange->body);
  InferRequest request;
  absl::Status status = ReadInferRequest(body.range(), &request);
  // The caller's id goes back as it came, also when it is empty.
  facts.request_id = request.header.id();
  status.Update(CheckMessageSize(serving, exchange->body.Length()));
  if (!status.ok()) return status;
  auto model =
      FindModel(serving, request.header.model_name(), request.header.model_version(), &facts);
  if (!model.ok()) return model.status();
  ByteArena arena;
  auto question = ReadQuestion(request, &arena);
  if (!question.ok()) return question.status();
  if (static_cast<int64_t>(question->sequences.size()) > serving.max_call_sequences) {
    return InvalidField("items", "B = ", question->sequences.size(),
                        ", this server queues at most ", serving.max_call_sequences,
                        " requests (--max-queued-requests); send several calls");
  }
  if (question->timeout.count() > 0) {
    exchange->deadline =
        std::min<Clock::time_point>(exchange->deadline, exchange->arrival + question->timeout);
  }
  PreparedInfer prepared;
  const SequenceOptions options = {WidestOf(*question), question->priority};
  for (const EncodedSequence& sequence : question->sequences) {
    facts.items += sequence.num_items();
    auto pending = MakeRequest(serving, *exchange, *model, sequence, options);
    if (!pending.ok()) return pending.status();
    prepared.requests.push_back(*std::move(pending));
  }
  status = CheckPaddedSize(serving, *question, (*model)->model->info());
  if (!status.ok()) return status;
  prepared.group =
      std::make_shared<Group>(std::move(exchange), *std::move(model), *std::move(question));
  return prepared;
}

}  // namespace

void HandleInfer(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  auto prepared = WithinMemory([&] { return PrepareInfer(serving, exchange); });
  exchange->body.Clear();
  if (!prepared.ok()) return exchange->Finish(prepared.status());
  Batcher* const batcher = serving.batcher;
  std::vector<RequestHandle> handles;
  for (size_t b = 0; b < prepared->requests.size(); ++b) {
    PendingRequest& request = prepared->requests[b];
    request.done = [group = prepared->group, b](absl::StatusOr<Answer> answer) {
      group->Complete(b, std::move(answer));
    };
    handles.push_back(batcher->Enqueue(std::move(request)));
  }
  exchange->OnLeave([batcher, handles = std::move(handles)] {
    for (const RequestHandle handle : handles) batcher->Cancel(handle);
  });
}

grpc::ByteBuffer WrapStreamAnswer(grpc::ByteBuffer answer) {
  MessageWriter writer;
  writer.Begin(inference::ModelStreamInferResponse::kInferResponseFieldNumber, answer.Length());
  writer.Bytes(answer);
  return writer.Take();
}

grpc::ByteBuffer WrapStreamError(const ExchangeFacts& facts, const absl::Status& status) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(
      absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message()));
  response.mutable_infer_response()->set_id(facts.request_id);
  return Serialize(response);
}

}  // namespace attend

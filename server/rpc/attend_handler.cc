#include "server/rpc/attend_handler.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "attend/v1/attend.pb.h"
#include "server/rpc/attend_codec.h"
#include "server/rpc/body.h"

namespace attend {
namespace {

void ToMessage(const ServedModel& served, v1::ModelInfo* message) {
  const ModelInfo& info = served.model->info();
  message->set_name(served.name);
  message->set_version(absl::StrCat(served.version));
  message->set_kind(info.kind);
  message->set_d_f(info.d_f);
  message->set_d_k(info.d_k);
  message->set_d_v(info.d_v);
  message->set_d_out(info.d_out);
  message->set_num_heads(info.num_heads);
  message->set_num_key_heads(info.num_key_heads);
  message->set_normalizer(info.normalizer);
  message->set_scale(info.scale);
  message->set_causal(info.causal);
  message->set_max_sequence_length(info.max_sequence_length);
  for (const std::string& name : info.feature_names) message->add_feature_names(name);
  for (const auto& [name, features] : info.item_names) {
    v1::NamedItem* item = message->add_item_names();
    item->set_name(name);
    item->mutable_features()->Add(features.begin(), features.end());
  }
}

struct Prepared {
  PendingRequest request;
  ElementType answer_type = ElementType::kF32;
};

absl::StatusOr<Prepared> Prepare(const Serving& serving, Exchange* exchange) {
  const Body body(exchange->body);
  ByteArena arena;
  AttendRequestView view;
  const absl::Status read = ReadAttendRequest(body.range(), &arena, &view);
  exchange->facts.request_id = view.request_id.empty() ? MakeRequestId() : view.request_id;
  auto status = CheckMessageSize(serving, exchange->body.Length());
  status.Update(read);
  if (!status.ok()) return status;
  auto model = FindModel(serving, view.model, view.version, &exchange->facts);
  if (!model.ok()) return model.status();
  exchange->facts.items = view.sequence.num_items();
  auto request = MakeRequest(serving, *exchange, *std::move(model), view.sequence,
                             {view.answer_type, view.priority});
  if (!request.ok()) return request.status();
  return Prepared{*std::move(request), view.answer_type};
}

}  // namespace

void HandleAttend(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  auto prepared = Prepare(serving, exchange.get());
  // The request owns its numbers now.
  exchange->body.Clear();
  if (!prepared.ok()) return exchange->Finish(prepared.status());
  PendingRequest& request = prepared->request;
  request.done = [exchange, model = request.model, n = request.input.num_items(),
                  type = prepared->answer_type](absl::StatusOr<Answer> answer) {
    if (!answer.ok()) return exchange->Finish(answer.status());
    exchange->Finish(WithinMemory([&]() -> absl::StatusOr<grpc::ByteBuffer> {
      return WriteAttendResponse({exchange->facts.request_id, *model, n, type}, *std::move(answer));
    }));
  };
  Batcher* const batcher = serving.batcher;
  const RequestHandle handle = batcher->Enqueue(std::move(request));
  exchange->OnLeave([batcher, handle] { batcher->Cancel(handle); });
}

void HandleListModels(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  v1::ListModelsRequest request;
  if (auto status = Parse(exchange->body, &request); !status.ok()) {
    return exchange->Finish(status);
  }
  v1::ListModelsResponse response;
  for (const auto& model : serving.registry->List()) ToMessage(*model, response.add_models());
  exchange->Finish(Serialize(response));
}

void HandleGetModel(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  v1::GetModelRequest request;
  if (auto status = Parse(exchange->body, &request); !status.ok()) {
    return exchange->Finish(status);
  }
  auto model = FindModel(serving, request.model(), request.version(), &exchange->facts);
  if (!model.ok()) return exchange->Finish(model.status());
  v1::ModelInfo response;
  ToMessage(**model, &response);
  exchange->Finish(Serialize(response));
}

}  // namespace attend

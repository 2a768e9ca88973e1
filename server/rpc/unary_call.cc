#include "server/rpc/unary_call.h"

#include <utility>

#include "server/rpc/status_codec.h"

namespace attend {

Clock::time_point DeadlineOf(const grpc::ServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + (deadline - std::chrono::system_clock::now());
}

void UnaryCall::Accept(const UnaryMethod& method, Pollers* pollers) {
  auto call = std::make_shared<UnaryCall>(method, pollers);
  call->self_ = call;
  call->context_.AsyncNotifyWhenDone(&call->over_);
  method.accept(&call->context_, &call->body, &call->responder_, pollers->queue(),
                &call->accepted_);
}

UnaryCall::UnaryCall(const UnaryMethod& method, Pollers* pollers)
    : Exchange(method.name, method.observer), method_(method), pollers_(pollers) {
  accepted_ = [this](bool ok) { OnAccepted(ok); };
  sent_ = [this](bool) { OnEvent(); };
  over_ = [this](bool ok) { OnOver(ok); };
}

UnaryCall::~UnaryCall() {
  if (era_ >= 0) method_.live->End(era_);
}

void UnaryCall::OnAccepted(bool ok) {
  if (!ok) {
    self_.reset();
    return;
  }
  era_ = method_.live->Begin();
  arrival = Clock::now();
  deadline = DeadlineOf(context_);
  Accept(method_, pollers_);
  method_.handler(self_);
}

void UnaryCall::Send(absl::StatusOr<grpc::ByteBuffer> answer) {
  pollers_->Post([this, answer = std::move(answer)] { SendNow(answer); });
}

void UnaryCall::SendNow(const absl::StatusOr<grpc::ByteBuffer>& answer) {
  if (answer.ok()) {
    responder_.Finish(*answer, grpc::Status::OK, &sent_);
    return;
  }
  if (const auto pushback = RetryPushback(answer.status())) {
    context_.AddTrailingMetadata("grpc-retry-pushback-ms", *pushback);
  }
  responder_.FinishWithError(ToGrpcStatus(answer.status()), &sent_);
}

void UnaryCall::OnOver(bool) {
  if (context_.IsCancelled()) Leave();
  OnEvent();
}

void UnaryCall::OnEvent() {
  if (events_left_.fetch_sub(1) == 1) self_.reset();
}

}  // namespace attend

// The life of one unary call on a completion queue.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>

#include "server/rpc/completion_queue.h"
#include "server/rpc/exchange.h"
#include "server/rpc/live_calls.h"

namespace attend {

// One method of a service, as generated code and a handler give it.
struct UnaryMethod {
  const char* name = nullptr;  // "attend.v1.Attention/Attend"
  // The generated RequestX of a raw method.
  std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                     grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*,
                     grpc::ServerCompletionQueue*, void* tag)>
      accept;
  Handler handler;
  ExchangeObserver* observer = nullptr;
  LiveCalls* live = nullptr;
};

// Waits for a call, takes it, has it handled, sends the answer. Owns itself, from Accept to the
// last event: two for a call (answer sent, call over), one for a wait that the shutdown ended.
class UnaryCall final : public Exchange, public std::enable_shared_from_this<UnaryCall> {
 public:
  // `method` and `pollers` outlive the call. Each accepted call begins the wait for the next.
  static void Accept(const UnaryMethod& method, Pollers* pollers);

  UnaryCall(const UnaryMethod& method, Pollers* pollers);
  ~UnaryCall() override;

 private:
  void Send(absl::StatusOr<grpc::ByteBuffer> answer) override;
  void SendNow(const absl::StatusOr<grpc::ByteBuffer>& answer);
  void OnAccepted(bool ok);
  void OnOver(bool ok);
  void OnEvent();

  const UnaryMethod& method_;
  Pollers* const pollers_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_{&context_};
  Event accepted_, sent_, over_;
  std::atomic<int> events_left_{2};
  std::shared_ptr<UnaryCall> self_;
  int era_ = -1;  // of live calls; below 0: not begun
};

// The caller's deadline on the clock that requests are measured by.
Clock::time_point DeadlineOf(const grpc::ServerContext& context);

}  // namespace attend

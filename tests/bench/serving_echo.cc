#include "tests/bench/serving_echo.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"

namespace attend::bench {
namespace {

using v1::Attention;
using Service = Attention::WithRawMethod_Attend<
    Attention::WithAsyncMethod_GetModel<Attention::WithRawMethod_AttendStream<
        Attention::WithRawMethod_ListModels<Attention::Service>>>>;

constexpr int kWaitingCalls = 128;  // as many as the server's

struct Tag {
  virtual ~Tag() = default;
  virtual void Proceed(bool ok) = 0;
};

struct Echo {
  const EchoOptions options;
  Service service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
};

class EchoCall final : public Tag {
 public:
  explicit EchoCall(Echo* echo) : echo_(echo) {
    echo->service.RequestAttend(&context_, &body_, &responder_, echo->queue.get(),
                                echo->queue.get(), this);
  }
  void Proceed(bool ok) override {
    if (!ok || answered_) {
      delete this;
      return;
    }
    answered_ = true;
    new EchoCall(echo_);
    if (echo_->options.refuse) {
      responder_.FinishWithError({grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full"}, this);
    } else {
      responder_.Finish(body_, grpc::Status::OK, this);
    }
  }

 private:
  Echo* const echo_;
  grpc::ServerContext context_;
  grpc::ByteBuffer body_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_{&context_};
  bool answered_ = false;
};

class ModelCall final : public Tag {
 public:
  explicit ModelCall(Echo* echo) : echo_(echo) {
    echo->service.RequestGetModel(&context_, &request_, &responder_, echo->queue.get(),
                                  echo->queue.get(), this);
  }
  void Proceed(bool ok) override {
    if (!ok || answered_) {
      delete this;
      return;
    }
    answered_ = true;
    new ModelCall(echo_);
    v1::ModelInfo model;
    model.set_name(request_.model());
    model.set_d_f(echo_->options.d_f);
    responder_.Finish(model, grpc::Status::OK, this);
  }

 private:
  Echo* const echo_;
  grpc::ServerContext context_;
  v1::GetModelRequest request_;
  grpc::ServerAsyncResponseWriter<v1::ModelInfo> responder_{&context_};
  bool answered_ = false;
};

}  // namespace

int ServeEcho(const EchoOptions& options) {
  Echo echo{options, {}, nullptr};
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&echo.service);
  echo.queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  for (int i = 0; i < kWaitingCalls; ++i) new EchoCall(&echo);
  new ModelCall(&echo);
  printf("listening grpc=localhost:%d\n", port);
  fflush(stdout);
  std::vector<std::jthread> pollers;
  for (int i = 0; i < options.pollers; ++i) {
    pollers.emplace_back([&echo] {
      void* tag = nullptr;
      for (bool ok = false; echo.queue->Next(&tag, &ok);) static_cast<Tag*>(tag)->Proceed(ok);
    });
  }
  return 0;  // the pollers are waited for
}

}  // namespace attend::bench

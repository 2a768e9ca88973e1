#include "server/rpc/health.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include "server/rpc/completion_queue.h"

namespace attend {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Owns itself until its answer is sent.
class Health::CheckCall {
 public:
  CheckCall(Health* health, grpc::ServerCompletionQueue* queue) : health_(health), queue_(queue) {
    health->service_.RequestCheck(&context_, &request_, &responder_, queue, queue, &accepted_);
  }

 private:
  void OnAccepted(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    new CheckCall(health_, queue_);
    const Status status = health_->StatusOf(request_.service());
    if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
      responder_.FinishWithError({grpc::StatusCode::NOT_FOUND, "no such service"}, &sent_);
      return;
    }
    HealthCheckResponse response;
    response.set_status(status);
    responder_.Finish(response, grpc::Status::OK, &sent_);
  }

  Health* const health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> responder_{&context_};
  Event accepted_ = [this](bool ok) { OnAccepted(ok); };
  Event sent_ = [this](bool) { delete this; };
};

// Owns itself, from Accept to the last event. It ends when its caller leaves or the server closes.
class Health::WatchCall : public std::enable_shared_from_this<WatchCall> {
 public:
  static void Accept(Health* health, grpc::ServerCompletionQueue* queue) {
    auto call = std::make_shared<WatchCall>(health, queue);
    MutexLock lock(&call->mutex_);
    call->self_ = call;
    call->context_.AsyncNotifyWhenDone(&call->over_);
    health->service_.RequestWatch(&call->context_, &call->request_, &call->writer_, queue, queue,
                                  call->Keep(call->accepted_));
  }

  WatchCall(Health* health, grpc::ServerCompletionQueue* queue) : health_(health), queue_(queue) {}

  void Tell() {
    MutexLock lock(&mutex_);
    if (over_was_ || writing_) return;
    const Status status = health_->StatusOf(request_.service());
    if (status == told_) return;
    writing_ = true;
    HealthCheckResponse response;
    response.set_status(told_ = status);
    writer_.Write(response, Keep(written_));
  }

 private:
  Event* Keep(Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++events_left_;
    return &event;
  }
  void Release() {
    std::shared_ptr<WatchCall> last;
    MutexLock lock(&mutex_);
    if (--events_left_ == 0) last.swap(self_);
  }

  void OnAccepted(bool ok) {
    if (ok) {
      {
        // A call that never was is never over.
        MutexLock lock(&mutex_);
        ++events_left_;
      }
      Accept(health_, queue_);
      health_->AddWatch(shared_from_this());
      Tell();
    }
    Release();
  }
  void OnWritten() {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
    }
    Tell();
    Release();
  }
  void OnOver() {
    {
      MutexLock lock(&mutex_);
      over_was_ = true;
    }
    Release();
  }

  Health* const health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&context_};
  Event accepted_ = [this](bool ok) { OnAccepted(ok); };
  Event written_ = [this](bool) { OnWritten(); };
  Event over_ = [this](bool) { OnOver(); };

  Mutex mutex_;
  std::shared_ptr<WatchCall> self_ ABSL_GUARDED_BY(mutex_);
  int events_left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_was_ ABSL_GUARDED_BY(mutex_) = false;
  Status told_ ABSL_GUARDED_BY(mutex_) = HealthCheckResponse::UNKNOWN;
};

Health::Health(const std::vector<std::string>& services) {
  statuses_[""] = HealthCheckResponse::NOT_SERVING;
  for (const std::string& name : services) statuses_[name] = HealthCheckResponse::NOT_SERVING;
}

void Health::AcceptAll(grpc::ServerCompletionQueue* queue) {
  new CheckCall(this, queue);
  WatchCall::Accept(this, queue);
}

void Health::SetServing(bool serving) {
  std::vector<std::weak_ptr<WatchCall>> watches;
  {
    MutexLock lock(&mutex_);
    for (auto& [name, status] : statuses_) {
      status = serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    }
    watches = watches_;
  }
  for (const auto& weak : watches) {
    if (const auto watch = weak.lock()) watch->Tell();
  }
}

Health::Status Health::StatusOf(const std::string& service) {
  MutexLock lock(&mutex_);
  const auto found = statuses_.find(service);
  return found == statuses_.end() ? HealthCheckResponse::SERVICE_UNKNOWN : found->second;
}

void Health::AddWatch(const std::shared_ptr<WatchCall>& watch) {
  MutexLock lock(&mutex_);
  std::erase_if(watches_, [](const auto& weak) { return weak.expired(); });
  watches_.push_back(watch);
}

}  // namespace attend

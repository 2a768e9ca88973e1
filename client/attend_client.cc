#include "client/attend_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "attend/v1/attend.grpc.pb.h"
#include "client/attend_stream.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace attend::client {
namespace {

void Apply(const CallOptions& options, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + options.deadline);
  context->set_wait_for_ready(options.wait_for_ready);
}

// Counts open asynchronous calls so that the client can outlive them.
class OpenCalls {
 public:
  void Begin() {
    std::lock_guard lock(mutex_);
    ++open_;
  }
  void End() {
    std::lock_guard lock(mutex_);
    if (--open_ == 0) none_.notify_all();
  }
  void WaitForNone() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return open_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t open_ = 0;
};

}  // namespace

struct AttendClient::Impl {
  Impl(const std::shared_ptr<grpc::Channel>& channel, const RetryOptions& retry)
      : retry(retry),
        attention(v1::Attention::NewStub(channel)),
        health(grpc::health::v1::Health::NewStub(channel)) {}

  // One unary call through `method`, a member of a stub.
  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status Call(Stub* stub, Method method, const CallOptions& options, const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    Apply(options, &context);
    return FromGrpc((stub->*method)(&context, request, response));
  }

  const RetryOptions retry;
  std::unique_ptr<v1::Attention::Stub> attention;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;
  OpenCalls open_calls;
};

AttendClient::AttendClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AttendClient::~AttendClient() { impl_->open_calls.WaitForNone(); }

absl::StatusOr<std::unique_ptr<AttendClient>> AttendClient::Create(const ChannelOptions& options) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<AttendClient>(
      new AttendClient(std::make_unique<Impl>(*channel, options.retry)));
}

absl::StatusOr<v1::AttendResponse> AttendClient::Attend(const v1::AttendRequest& request,
                                                        const CallOptions& options) {
  v1::AttendResponse response;
  absl::Status status = impl_->Call(impl_->attention.get(), &v1::Attention::Stub::Attend, options,
                                    request, &response);
  if (!status.ok()) return status;
  return response;
}

void AttendClient::AttendAsync(const v1::AttendRequest& request, const CallOptions& options,
                               AttendDone done) {
  struct Call {
    grpc::ClientContext context;
    v1::AttendResponse response;
    AttendDone done;
  };
  auto call = std::make_shared<Call>();
  call->done = std::move(done);
  Apply(options, &call->context);
  impl_->open_calls.Begin();
  // gRPC serialises the request before it returns from here.
  impl_->attention->async()->Attend(&call->context, &request, &call->response,
                                    [this, call](grpc::Status status) {
                                      if (status.ok()) {
                                        call->done(std::move(call->response));
                                      } else {
                                        call->done(FromGrpc(status));
                                      }
                                      impl_->open_calls.End();
                                    });
}

absl::Status AttendClient::AttendMany(std::span<const v1::AttendRequest> requests,
                                      const CallOptions& options, const StreamDone& done) {
  absl::StatusOr<UnansweredRequests> unanswered = UnansweredRequests::Of(requests);
  if (!unanswered.ok()) return unanswered.status();
  const auto deadline = std::chrono::system_clock::now() + options.deadline;
  std::chrono::milliseconds backoff = impl_->retry.first_backoff;
  int fruitless = 0;
  const StreamDone count_and_tell = [&](size_t index, absl::StatusOr<v1::AttendResponse> answer) {
    fruitless = 0;
    backoff = impl_->retry.first_backoff;
    done(index, std::move(answer));
  };
  while (!unanswered->empty()) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    context.set_wait_for_ready(options.wait_for_ready);
    ++fruitless;
    const absl::Status status =
        RunStream(impl_->attention.get(), &context, requests, &*unanswered, count_and_tell);
    if (unanswered->empty()) break;
    if (status.ok()) return absl::InternalError("the server ended the stream without all answers");
    const bool again = absl::IsUnavailable(status) && fruitless < impl_->retry.max_attempts &&
                       std::chrono::system_clock::now() + backoff < deadline;
    if (!again) return status;
    std::this_thread::sleep_for(backoff);
    backoff = std::min(2 * backoff, impl_->retry.max_backoff);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::ModelInfo>> AttendClient::ListModels(const CallOptions& options) {
  v1::ListModelsResponse response;
  absl::Status status = impl_->Call(impl_->attention.get(), &v1::Attention::Stub::ListModels,
                                    options, v1::ListModelsRequest(), &response);
  if (!status.ok()) return status;
  return std::vector<v1::ModelInfo>(std::make_move_iterator(response.mutable_models()->begin()),
                                    std::make_move_iterator(response.mutable_models()->end()));
}

absl::StatusOr<v1::ModelInfo> AttendClient::GetModel(const std::string& name,
                                                     const std::string& version,
                                                     const CallOptions& options) {
  v1::GetModelRequest request;
  request.set_model(name);
  request.set_version(version);
  v1::ModelInfo info;
  absl::Status status =
      impl_->Call(impl_->attention.get(), &v1::Attention::Stub::GetModel, options, request, &info);
  if (!status.ok()) return status;
  return info;
}

absl::Status AttendClient::Health(const std::string& service, const CallOptions& options) {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  absl::Status status = impl_->Call(impl_->health.get(), &grpc::health::v1::Health::Stub::Check,
                                    options, request, &response);
  if (!status.ok() || response.status() == HealthCheckResponse::SERVING) return status;
  if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
    return absl::NotFoundError("SERVICE_UNKNOWN");
  }
  return absl::UnavailableError("NOT_SERVING");
}

}  // namespace attend::client

#include "server/rpc/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <array>
#include <utility>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"
#include "server/rpc/attend_handler.h"
#include "server/rpc/completion_queue.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/unary_call.h"

namespace attend {
namespace {

template <typename Base>
using RawAttend = v1::Attention::WithRawMethod_Attend<Base>;
using AttentionService = RawAttend<v1::Attention::WithRawMethod_ListModels<
    v1::Attention::WithRawMethod_GetModel<v1::Attention::Service>>>;

// Calls of one method that can arrive without waiting for a poller.
constexpr int kWaitingCalls = 128;

constexpr std::array<const char*, 1> kServices = {"attend.v1.Attention"};

// Once a process, before the first server is built.
void EnableHealthAndReflection() {
  static const bool enabled = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  static_cast<void>(enabled);
}

}  // namespace

struct GrpcServer::Impl {
  Serving serving;
  AttentionService attention;
  LiveCalls live;
  std::vector<UnaryMethod> unary_methods;
  std::string host;
  int port = 0;
  std::unique_ptr<Pollers> pollers;
  std::unique_ptr<grpc::Server> server;

  void AddMethods(ExchangeObserver* observer);
  bool Build(const GrpcServerOptions& options);
};

void GrpcServer::Impl::AddMethods(ExchangeObserver* observer) {
  const auto add = [&](const char* name, auto request, auto handle) {
    UnaryMethod& method = unary_methods.emplace_back();
    method.name = name;
    method.accept = [this, request](grpc::ServerContext* context, grpc::ByteBuffer* body,
                                    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>* responder,
                                    grpc::ServerCompletionQueue* queue, void* tag) {
      (attention.*request)(context, body, responder, queue, queue, tag);
    };
    method.handler = [this, handle](std::shared_ptr<Exchange> exchange) {
      handle(serving, std::move(exchange));
    };
    method.observer = observer;
    method.live = &live;
  };
  add("attend.v1.Attention/Attend", &AttentionService::RequestAttend, HandleAttend);
  add("attend.v1.Attention/ListModels", &AttentionService::RequestListModels, HandleListModels);
  add("attend.v1.Attention/GetModel", &AttentionService::RequestGetModel, HandleGetModel);
}

bool GrpcServer::Impl::Build(const GrpcServerOptions& options) {
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  // Without this a second server would take the same port and half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A message above the limit is refused by the handlers, which can say why.
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&attention);
  pollers = std::make_unique<Pollers>(builder.AddCompletionQueue(), options.pollers);
  server = builder.BuildAndStart();
  return server != nullptr && port != 0;
}

GrpcServer::GrpcServer() : impl_(std::make_unique<Impl>()) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const Serving& serving,
                                                              ExchangeObserver* observer) {
  std::unique_ptr<GrpcServer> server(new GrpcServer());
  Impl& impl = *server->impl_;
  impl.serving = serving;
  impl.host = options.address.substr(0, options.address.rfind(':'));
  impl.AddMethods(observer);
  if (!impl.Build(options)) {
    return absl::UnavailableError(
        absl::StrCat("can't listen on ", options.address,
                     ": the address is not HOST:PORT of this machine or is in use already"));
  }
  server->SetServing(false);
  for (const UnaryMethod& method : impl.unary_methods) {
    for (int i = 0; i < kWaitingCalls; ++i) UnaryCall::Accept(method, impl.pollers->queue());
  }
  impl.pollers->Start();
  return server;
}

GrpcServer::~GrpcServer() {
  if (impl_->server == nullptr) return;
  grpc_server_cancel_all_calls(impl_->server->c_server());
  impl_->server->Shutdown();
  impl_->pollers.reset();
}

std::string GrpcServer::address() const { return absl::StrCat(impl_->host, ":", impl_->port); }

void GrpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = impl_->server->GetHealthCheckService();
  for (const char* service : kServices) health->SetServingStatus(service, serving);
  health->SetServingStatus("", serving);
}

void GrpcServer::BeginDrain() { impl_->live.BeginDrain(); }

bool GrpcServer::WaitCallsOver(Clock::time_point deadline) {
  return impl_->live.WaitOver(deadline);
}

}  // namespace attend

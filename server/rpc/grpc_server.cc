#include "server/rpc/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/mutex.h"
#include "server/rpc/completion_queue.h"
#include "server/rpc/credentials.h"
#include "server/rpc/health.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/services.h"
#include "server/rpc/stream_call.h"

namespace attend {
namespace {

// Once a process, before the first server is built.
void EnableReflection() {
  static const bool enabled = [] {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  static_cast<void>(enabled);
}

// What one caller may take: streams of a connection, metadata, pings.
void LimitConnections(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 3);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
}

}  // namespace

struct GrpcServer::Impl {
  Serving serving;
  LiveCalls live;
  LiveStreams streams;
  std::unique_ptr<Services> services;
  Health health{Services::Names()};
  std::string host;
  int port = 0;
  std::unique_ptr<Pollers> pollers;
  std::unique_ptr<grpc::Server> server;

  Mutex mutex;
  bool serving_wanted ABSL_GUARDED_BY(mutex) = false;
  bool stalled ABSL_GUARDED_BY(mutex) = false;

  bool Build(const GrpcServerOptions& options,
             std::shared_ptr<grpc::ServerCredentials> credentials);
  void TellHealth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

bool GrpcServer::Impl::Build(const GrpcServerOptions& options,
                             std::shared_ptr<grpc::ServerCredentials> credentials) {
  EnableReflection();
  grpc::ServerBuilder builder;
  // Without this a second server would take the same port and half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A message above the limit is refused by the handlers, which can say why; one far above it is
  // not even received.
  constexpr int64_t kRoomToSayWhy = int64_t{64} << 20;
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<int64_t>(
      serving.max_message_bytes + kRoomToSayWhy, std::numeric_limits<int>::max())));
  builder.SetMaxSendMessageSize(-1);
  LimitConnections(&builder);
  builder.AddListeningPort(options.address, std::move(credentials), &port);
  services->Register(&builder);
  health.Register(&builder);
  // One carries more calls than four workers compute; each more costs switches between them.
  const int threads =
      options.pollers > 0 ? options.pollers : std::max(1, serving.batcher->threads() / 4);
  pollers = std::make_unique<Pollers>(builder.AddCompletionQueue(), threads);
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
  impl.services =
      std::make_unique<Services>(impl.serving, CallBooks{observer, &impl.live, &impl.streams});
  auto credentials = MakeServerCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  if (!impl.Build(options, *std::move(credentials))) {
    return absl::UnavailableError(
        absl::StrCat("can't listen on ", options.address,
                     ": the address is not HOST:PORT of this machine or is in use already"));
  }
  server->SetServing(false);
  impl.services->AcceptAll(impl.pollers->queue());
  impl.health.AcceptAll(impl.pollers->queue());
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

void GrpcServer::Impl::TellHealth() {
  health.SetServing(serving_wanted && !stalled);
}

void GrpcServer::SetServing(bool serving) {
  MutexLock lock(&impl_->mutex);
  impl_->serving_wanted = serving;
  impl_->TellHealth();
}

void GrpcServer::SetStalled(bool stalled) {
  MutexLock lock(&impl_->mutex);
  impl_->stalled = stalled;
  impl_->TellHealth();
}

void GrpcServer::BeginDrain() {
  impl_->live.BeginDrain();
  impl_->streams.BeginDrain();
}

bool GrpcServer::WaitCallsOver(Clock::time_point deadline) {
  return impl_->live.WaitOver(deadline);
}

}  // namespace attend

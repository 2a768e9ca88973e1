#include "server/rpc/grpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/memory_limit.h"
#include "core/mutex.h"
#include "server/rpc/completion_queue.h"
#include "server/rpc/credentials.h"
#include "server/rpc/listener.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/services.h"
#include "server/rpc/stream_call.h"

namespace attend {
namespace {

// Once a process, before the first server is built.
void EnableHealthAndReflection() {
  static const bool enabled = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  static_cast<void>(enabled);
}

// What one caller may take: streams of a connection, metadata, pings, time to shake hands.
void LimitConnections(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 3);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
}

// gRPC inflates a body whole before it looks at its size: a thousand bytes for one.
void RefuseCompression(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
}

// gRPC holds a whole body before it looks at its size, and for as long as its caller likes.
void LimitIncoming(int64_t bytes, int64_t max_message_bytes, grpc::ServerBuilder* builder) {
  if (bytes == 0) bytes = UsableMemory() / 4;
  bytes = std::max(bytes, 2 * max_message_bytes);
  grpc::ResourceQuota quota("attend");
  quota.Resize(static_cast<size_t>(bytes));
  builder->SetResourceQuota(quota);
}

}  // namespace

struct GrpcServer::Impl {
  Serving serving;
  LiveCalls live;
  LiveStreams streams;
  std::unique_ptr<Services> services;
  std::unique_ptr<Pollers> pollers;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<Listener> listener;

  Mutex mutex;
  bool serving_wanted ABSL_GUARDED_BY(mutex) = false;
  bool stalled ABSL_GUARDED_BY(mutex) = false;

  bool Build(const GrpcServerOptions& options,
             std::shared_ptr<grpc::ServerCredentials> credentials);
  void TellHealth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

bool GrpcServer::Impl::Build(const GrpcServerOptions& options,
                             std::shared_ptr<grpc::ServerCredentials> credentials) {
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  // A message above the limit is refused by the handlers, which can say why; one far above it is
  // dropped before them.
  constexpr int64_t kRoomToSayWhy = int64_t{64} << 20;
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<int64_t>(
      serving.max_message_bytes + kRoomToSayWhy, std::numeric_limits<int>::max())));
  builder.SetMaxSendMessageSize(-1);
  LimitConnections(&builder);
  RefuseCompression(&builder);
  LimitIncoming(options.max_incoming_bytes, serving.max_message_bytes, &builder);
  using Experimental = grpc::ServerBuilder::experimental_type;
  acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Experimental::ExternalConnectionType::FROM_FD, std::move(credentials));
  services->Register(&builder);
  // One carries more calls than four workers compute; each more costs switches between them.
  const int threads =
      options.pollers > 0 ? options.pollers : std::max(1, serving.batcher->threads() / 4);
  pollers = std::make_unique<Pollers>(builder.AddCompletionQueue(), threads);
  server = builder.BuildAndStart();
  return server != nullptr;
}

GrpcServer::GrpcServer() : impl_(std::make_unique<Impl>()) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const Serving& serving,
                                                              ExchangeObserver* observer) {
  std::unique_ptr<GrpcServer> server(new GrpcServer());
  Impl& impl = *server->impl_;
  impl.serving = serving;
  impl.services =
      std::make_unique<Services>(impl.serving, CallBooks{observer, &impl.live, &impl.streams});
  auto credentials = MakeServerCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  auto listener = Listener::Bind(options.address, options.max_connections);
  if (!listener.ok()) return listener.status();
  impl.listener = *std::move(listener);
  if (!impl.Build(options, *std::move(credentials))) {
    return absl::InternalError("gRPC can't start a server; the log has its reason");
  }
  server->SetServing(false);
  impl.services->AcceptAll(impl.pollers.get());
  impl.pollers->Start();
  impl.listener->Start([acceptor = impl.acceptor.get()](int listening_fd, int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listening_fd;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  });
  return server;
}

GrpcServer::~GrpcServer() {
  if (impl_->server == nullptr) return;
  impl_->listener.reset();
  grpc_server_cancel_all_calls(impl_->server->c_server());
  impl_->server->Shutdown();
  impl_->pollers.reset();
}

std::string GrpcServer::address() const { return impl_->listener->address(); }

int64_t GrpcServer::refused_connections() const { return impl_->listener->refused(); }

void GrpcServer::Impl::TellHealth() {
  const bool healthy = serving_wanted && !stalled;
  grpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
  for (const std::string& name : Services::Names()) health->SetServingStatus(name, healthy);
  health->SetServingStatus("", healthy);
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

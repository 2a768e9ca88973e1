#include "server/rpc/services.h"

#include <utility>

#include "attend/v1/attend.grpc.pb.h"
#include "kserve/grpc_service.grpc.pb.h"
#include "server/rpc/attend_codec.h"
#include "server/rpc/attend_handler.h"
#include "server/rpc/oip_handler.h"

namespace attend {
namespace {

using v1::Attention;
using AttentionService = Attention::WithRawMethod_Attend<Attention::WithRawMethod_AttendStream<
    Attention::WithRawMethod_ListModels<Attention::WithRawMethod_GetModel<Attention::Service>>>>;

using Oip = inference::GRPCInferenceService;
using OipServerMethods = Oip::WithRawMethod_ServerLive<Oip::WithRawMethod_ServerReady<
    Oip::WithRawMethod_ModelReady<Oip::WithRawMethod_ServerMetadata<Oip::Service>>>>;
using OipModelMethods = Oip::WithRawMethod_ModelMetadata<
    Oip::WithRawMethod_ModelConfig<Oip::WithRawMethod_ModelStatistics<
        Oip::WithRawMethod_RepositoryIndex<Oip::WithRawMethod_RepositoryModelLoad<
            Oip::WithRawMethod_RepositoryModelUnload<OipServerMethods>>>>>>;
using OipService =
    Oip::WithRawMethod_ModelInfer<Oip::WithRawMethod_ModelStreamInfer<OipModelMethods>>;

constexpr int kWaitingCalls = 128;
constexpr int kWaitingSmallCalls = 8;

grpc::ByteBuffer AsItIs(grpc::ByteBuffer answer) { return answer; }

grpc::ByteBuffer AttendStreamError(const ExchangeFacts& facts, const absl::Status& status) {
  return WriteAttendError(facts.request_id, status);
}

}  // namespace

struct Services::Impl {
  const Serving& serving;
  const CallBooks books;
  AttentionService attention;
  OipService oip;
  struct Unary {
    UnaryMethod method;
    int waiting;
  };
  std::vector<Unary> unary;
  std::vector<StreamMethod> streams;

  template <typename Handle>
  Handler HandlerOf(Handle handle) {
    return [this, handle](std::shared_ptr<Exchange> exchange) {
      handle(serving, std::move(exchange));
    };
  }
  template <typename Service, typename Request, typename Handle>
  void AddUnary(const char* name, Service& service, Request request, Handle handle,
                int waiting = kWaitingSmallCalls) {
    UnaryMethod method;
    method.name = name;
    method.accept = [&service, request](auto* context, auto* body, auto* responder, auto* queue,
                                        void* tag) {
      (service.*request)(context, body, responder, queue, queue, tag);
    };
    method.handler = HandlerOf(handle);
    method.observer = books.observer;
    method.live = books.live;
    unary.push_back({std::move(method), waiting});
  }
  template <typename Service, typename Request, typename Handle>
  StreamMethod& AddStream(const char* name, Service& service, Request request, Handle handle) {
    StreamMethod& method = streams.emplace_back();
    method.name = name;
    method.accept = [&service, request](auto* context, auto* stream, auto* queue, void* tag) {
      (service.*request)(context, stream, queue, queue, tag);
    };
    method.handler = HandlerOf(handle);
    method.observer = books.observer;
    method.live = books.live;
    method.streams = books.streams;
    return method;
  }
  void AddAttention();
  void AddOip();
};

void Services::Impl::AddAttention() {
  AddUnary("attend.v1.Attention/Attend", attention, &AttentionService::RequestAttend, HandleAttend,
           kWaitingCalls);
  AddUnary("attend.v1.Attention/ListModels", attention, &AttentionService::RequestListModels,
           HandleListModels);
  AddUnary("attend.v1.Attention/GetModel", attention, &AttentionService::RequestGetModel,
           HandleGetModel);
  StreamMethod& stream = AddStream("attend.v1.Attention/AttendStream", attention,
                                   &AttentionService::RequestAttendStream, HandleAttend);
  stream.wrap = AsItIs;
  stream.wrap_error = AttendStreamError;
}

void Services::Impl::AddOip() {
  const auto add = [this](const char* name, auto request, auto handle, int waiting) {
    AddUnary(name, oip, request, handle, waiting);
  };
  const int small = kWaitingSmallCalls;
  add("inference.GRPCInferenceService/ModelInfer", &OipService::RequestModelInfer, HandleInfer,
      kWaitingCalls);
  add("inference.GRPCInferenceService/ServerLive", &OipService::RequestServerLive, HandleServerLive,
      small);
  add("inference.GRPCInferenceService/ServerReady", &OipService::RequestServerReady,
      HandleServerReady, small);
  add("inference.GRPCInferenceService/ModelReady", &OipService::RequestModelReady, HandleModelReady,
      small);
  add("inference.GRPCInferenceService/ServerMetadata", &OipService::RequestServerMetadata,
      HandleServerMetadata, small);
  add("inference.GRPCInferenceService/ModelMetadata", &OipService::RequestModelMetadata,
      HandleModelMetadata, small);
  add("inference.GRPCInferenceService/ModelConfig", &OipService::RequestModelConfig,
      HandleModelConfig, small);
  add("inference.GRPCInferenceService/ModelStatistics", &OipService::RequestModelStatistics,
      HandleModelStatistics, small);
  add("inference.GRPCInferenceService/RepositoryIndex", &OipService::RequestRepositoryIndex,
      HandleRepositoryIndex, small);
  add("inference.GRPCInferenceService/RepositoryModelLoad", &OipService::RequestRepositoryModelLoad,
      HandleRepositoryModelLoad, small);
  add("inference.GRPCInferenceService/RepositoryModelUnload",
      &OipService::RequestRepositoryModelUnload, HandleRepositoryModelUnload, small);
  StreamMethod& stream = AddStream("inference.GRPCInferenceService/ModelStreamInfer", oip,
                                   &OipService::RequestModelStreamInfer, HandleInfer);
  stream.wrap = WrapStreamAnswer;
  stream.wrap_error = WrapStreamError;
}

Services::Services(const Serving& serving, const CallBooks& books)
    : impl_(new Impl{serving, books, {}, {}, {}, {}}) {
  impl_->AddAttention();
  impl_->AddOip();
}

Services::~Services() = default;

void Services::Register(grpc::ServerBuilder* builder) {
  builder->RegisterService(&impl_->attention);
  builder->RegisterService(&impl_->oip);
}

void Services::AcceptAll(Pollers* pollers) {
  for (const auto& [method, waiting] : impl_->unary) {
    for (int i = 0; i < waiting; ++i) UnaryCall::Accept(method, pollers);
  }
  for (const StreamMethod& method : impl_->streams) {
    for (int i = 0; i < kWaitingSmallCalls; ++i) StreamCall::Accept(method, pollers->queue());
  }
}

std::vector<std::string> Services::Names() {
  return {Attention::service_full_name(), Oip::service_full_name()};
}

}  // namespace attend

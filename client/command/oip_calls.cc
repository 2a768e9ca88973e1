#include "client/command/oip_calls.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/client_context.h>

#include <utility>

#include "kserve/grpc_service.grpc.pb.h"

namespace attend::client {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelMetadataResponse;

struct TypeName {
  const char* attend;
  const char* oip;
};
constexpr TypeName kTypeNames[] = {
    {"F32", "FP32"}, {"F16", "FP16"}, {"BF16", "BF16"}, {"F64", "FP64"}, {"BOOL", "BOOL"}};

std::string OipTypeOf(const std::string& dtype) {
  for (const TypeName& row : kTypeNames) {
    if (dtype == row.attend) return row.oip;
  }
  return dtype.empty() ? "FP32" : dtype;
}

void AddInput(const char* name, const v1::Tensor& tensor, ModelInferRequest* request) {
  auto* input = request->add_inputs();
  input->set_name(name);
  input->set_datatype(OipTypeOf(tensor.dtype()));
  *input->mutable_shape() = tensor.shape();
  request->add_raw_input_contents(tensor.data());
}

// The first tensor's extent at `dimension`, or INTERNAL.
template <typename Tensors>
absl::StatusOr<int64_t> ExtentOf(const Tensors& tensors, const std::string& name, int dimension) {
  for (const ModelMetadataResponse::TensorMetadata& tensor : tensors) {
    if (tensor.name() == name && tensor.shape_size() > dimension) return tensor.shape(dimension);
  }
  return absl::InternalError(absl::StrCat("the model's metadata has no tensor '", name,
                                          "' with a dimension ", dimension,
                                          ": is it a model of Attend?"));
}

class OipCalls : public ServerCalls {
 public:
  explicit OipCalls(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(GRPCInferenceService::NewStub(channel)) {}

  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            const CallOptions& options) override {
    inference::ModelInferResponse response;
    const absl::Status status =
        Call(&GRPCInferenceService::Stub::ModelInfer, options, ToInferRequest(request), &response);
    if (!status.ok()) return status;
    return FromInferResponse(&response);
  }

  absl::StatusOr<std::vector<v1::ModelInfo>> ListModels(const CallOptions& options) override {
    inference::RepositoryIndexResponse index;
    const absl::Status status = Call(&GRPCInferenceService::Stub::RepositoryIndex, options,
                                     inference::RepositoryIndexRequest(), &index);
    if (!status.ok()) return status;
    std::vector<v1::ModelInfo> models;
    for (const auto& model : index.models()) {
      auto info = GetModel(model.name(), model.version(), options);
      if (!info.ok()) return info.status();
      models.push_back(*std::move(info));
    }
    return models;
  }

  absl::StatusOr<v1::ModelInfo> GetModel(const std::string& name, const std::string& version,
                                         const CallOptions& options) override {
    inference::ModelMetadataRequest request;
    request.set_name(name);
    request.set_version(version);
    ModelMetadataResponse metadata;
    const absl::Status status =
        Call(&GRPCInferenceService::Stub::ModelMetadata, options, request, &metadata);
    if (!status.ok()) return status;
    auto info = FromMetadata(metadata);
    if (info.ok() && !version.empty()) info->set_version(version);
    return info;
  }

  absl::Status Health(const std::string& service, const CallOptions& options) override {
    if (!service.empty()) {
      return absl::InvalidArgumentError(
          "--service: the Open Inference Protocol tells the whole server's health alone; leave it "
          "out, or use --protocol attend");
    }
    inference::ServerReadyResponse response;
    const absl::Status status = Call(&GRPCInferenceService::Stub::ServerReady, options,
                                     inference::ServerReadyRequest(), &response);
    if (!status.ok() || response.ready()) return status;
    return absl::UnavailableError("NOT READY");
  }

 private:
  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const CallOptions& options, const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options.deadline);
    context.set_wait_for_ready(options.wait_for_ready);
    return FromGrpc((stub_.get()->*method)(&context, request, response));
  }

  const std::unique_ptr<GRPCInferenceService::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServerCalls>> MakeOipCalls(const ChannelOptions& options) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options);
  if (!channel.ok()) return channel.status();
  return std::make_unique<OipCalls>(*channel);
}

ModelInferRequest ToInferRequest(const v1::AttendRequest& request) {
  ModelInferRequest to;
  to.set_model_name(request.model());
  to.set_model_version(request.version());
  to.set_id(request.request_id());
  if (request.causal()) (*to.mutable_parameters())["causal"].set_bool_param(true);
  if (request.priority() > 0) {
    (*to.mutable_parameters())["priority"].set_uint64_param(request.priority());
  }
  AddInput("items", request.items(), &to);
  if (request.has_key_mask()) AddInput("key_mask", request.key_mask(), &to);
  if (request.has_attention_mask()) AddInput("attention_mask", request.attention_mask(), &to);
  if (request.has_attention_bias()) AddInput("attention_bias", request.attention_bias(), &to);
  for (const int want : request.want()) {
    to.add_outputs()->set_name(want == v1::SCORES    ? "scores"
                               : want == v1::WEIGHTS ? "weights"
                                                     : "values");
  }
  return to;
}

absl::StatusOr<v1::AttendResponse> FromInferResponse(inference::ModelInferResponse* response) {
  if (response->outputs_size() != response->raw_output_contents_size()) {
    return absl::InternalError(absl::StrCat("an answer with ", response->outputs_size(),
                                            " outputs and ", response->raw_output_contents_size(),
                                            " raw contents"));
  }
  v1::AttendResponse answer;
  answer.set_request_id(response->id());
  answer.set_model(response->model_name());
  answer.set_version(response->model_version());
  for (int i = 0; i < response->outputs_size(); ++i) {
    const auto& output = response->outputs(i);
    const std::string& name = output.name();
    v1::Tensor* const tensor = name == "values"    ? answer.mutable_values()
                               : name == "scores"  ? answer.mutable_scores()
                               : name == "weights" ? answer.mutable_weights()
                                                   : nullptr;
    if (tensor == nullptr || output.datatype() != "FP32") {
      return absl::InternalError(absl::StrCat("an answer with the output '", name, "' of ",
                                              output.datatype(),
                                              ", expected values, scores or weights of FP32"));
    }
    tensor->set_dtype("F32");
    *tensor->mutable_shape() = output.shape();
    *tensor->mutable_data() = std::move(*response->mutable_raw_output_contents(i));
  }
  return answer;
}

absl::StatusOr<v1::ModelInfo> FromMetadata(const ModelMetadataResponse& metadata) {
  const auto d_f = ExtentOf(metadata.inputs(), "items", 1);
  if (!d_f.ok()) return d_f.status();
  const auto d_out = ExtentOf(metadata.outputs(), "values", 1);
  if (!d_out.ok()) return d_out.status();
  const auto num_heads = ExtentOf(metadata.outputs(), "weights", 0);
  if (!num_heads.ok()) return num_heads.status();
  v1::ModelInfo info;
  info.set_name(metadata.name());
  if (metadata.versions_size() > 0) info.set_version(*metadata.versions().rbegin());
  info.set_kind(metadata.platform());
  info.set_d_f(*d_f);
  info.set_d_out(*d_out);
  info.set_num_heads(*num_heads);
  return info;
}

}  // namespace attend::client

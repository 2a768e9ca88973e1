#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "kserve/grpc_service.pb.h"
#include "server/rpc/body.h"
#include "server/rpc/model_statistics.h"
#include "server/rpc/oip_handler.h"

namespace attend {
namespace {

using inference::ModelMetadataResponse;

// A tensor of the protocol's two descriptions of a model; -1 is any size.
struct TensorShape {
  const char* name;
  inference::DataType type;
  const char* datatype;
  std::vector<int64_t> shape;
  bool optional = true;
};

std::vector<TensorShape> InputsOf(const ModelInfo& info) {
  return {{"items", inference::TYPE_FP32, "FP32", {-1, info.d_f}, false},
          {"lengths", inference::TYPE_INT32, "INT32", {-1}},
          {"key_mask", inference::TYPE_BOOL, "BOOL", {-1}},
          {"attention_mask", inference::TYPE_BOOL, "BOOL", {-1, -1}},
          {"attention_bias", inference::TYPE_FP32, "FP32", {-1, -1}}};
}

std::vector<TensorShape> OutputsOf(const ModelInfo& info) {
  return {{"values", inference::TYPE_FP32, "FP32", {-1, info.d_out}},
          {"scores", inference::TYPE_FP32, "FP32", {info.num_heads, -1, -1}},
          {"weights", inference::TYPE_FP32, "FP32", {info.num_heads, -1, -1}}};
}

void ToMetadata(const TensorShape& tensor, ModelMetadataResponse::TensorMetadata* metadata) {
  metadata->set_name(tensor.name);
  metadata->set_datatype(tensor.datatype);
  metadata->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
}

using Models = std::vector<std::shared_ptr<const ServedModel>>;

// All versions of `name`, or all models when it is empty, or the version asked for.
absl::StatusOr<Models> ModelsOf(const Serving& serving, const std::string& name,
                                const std::string& version, ExchangeFacts* facts) {
  if (name.empty()) return serving.registry->List();
  auto model = FindModel(serving, name, version, facts);
  if (!model.ok()) return model.status();
  if (!version.empty()) return Models{*model};
  Models models = serving.registry->List();
  models.erase(std::remove_if(models.begin(), models.end(),
                              [&](const auto& served) { return served->name != name; }),
               models.end());
  return models;
}

void SetDuration(const CountAndTime& from, inference::StatisticDuration* to) {
  to->set_count(from.count);
  to->set_ns(from.time.count());
}

void ToStatistics(const ServedModel& model, const ModelCounts& counts,
                  inference::ModelStatistics* statistics) {
  statistics->set_name(model.name);
  statistics->set_version(absl::StrCat(model.version));
  statistics->set_last_inference(
      std::chrono::duration_cast<std::chrono::milliseconds>(counts.last.time_since_epoch())
          .count());
  statistics->set_inference_count(counts.queue.count);
  statistics->set_execution_count(counts.batches);
  auto* stats = statistics->mutable_inference_stats();
  SetDuration(counts.success, stats->mutable_success());
  SetDuration(counts.fail, stats->mutable_fail());
  SetDuration(counts.queue, stats->mutable_queue());
  SetDuration(counts.compute, stats->mutable_compute_infer());
  // Decoding and encoding are part of neither: they are done before the queue and after the batch.
  SetDuration({counts.compute.count}, stats->mutable_compute_input());
  SetDuration({counts.compute.count}, stats->mutable_compute_output());
}

// Parses Request, answers with what `make` fills in.
template <typename Request, typename Response, typename Make>
void Respond(const std::shared_ptr<Exchange>& exchange, Make make) {
  Request request;
  Response response;
  absl::Status status = Parse(exchange->body, &request);
  if (status.ok()) status = make(request, &response);
  if (!status.ok()) return exchange->Finish(status);
  exchange->Finish(Serialize(response));
}

// Answers with an empty Response once the repository is done.
template <typename Response>
RepositoryControl::Done FinishWith(std::shared_ptr<Exchange> exchange) {
  return [exchange = std::move(exchange)](const absl::Status& status) {
    if (!status.ok()) return exchange->Finish(status);
    exchange->Finish(Serialize(Response()));
  };
}

absl::Status LoadingIsOff() {
  return absl::PermissionDeniedError(
      "loading and unloading by calls is off; start the server with --allow-model-control");
}

}  // namespace

void HandleServerLive(const Serving&, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      exchange, [](const auto&, auto* response) {
        response->set_live(true);
        return absl::OkStatus();
      });
}

void HandleServerReady(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      exchange, [&](const auto&, auto* response) {
        response->set_ready(!serving.registry->List().empty());
        return absl::OkStatus();
      });
}

void HandleModelReady(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      exchange, [&](const auto& request, auto* response) {
        const auto model = FindModel(serving, request.name(), request.version(), &exchange->facts);
        response->set_ready(model.ok());
        return absl::IsInvalidArgument(model.status()) ? model.status() : absl::OkStatus();
      });
}

void HandleServerMetadata(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      exchange, [&](const auto&, auto* response) {
        response->set_name("attend");
        response->set_version(serving.version);
        for (const char* extension :
             {"model_configuration", "model_repository", "statistics", "parameters"}) {
          response->add_extensions(extension);
        }
        return absl::OkStatus();
      });
}

void HandleModelMetadata(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ModelMetadataRequest, ModelMetadataResponse>(
      exchange, [&](const auto& request, auto* response) {
        auto model = FindModel(serving, request.name(), request.version(), &exchange->facts);
        auto models = ModelsOf(serving, request.name(), request.version(), &exchange->facts);
        if (!model.ok()) return model.status();
        if (!models.ok()) return models.status();
        response->set_name((*model)->name);
        response->set_platform("attend");
        for (const auto& served : *models) response->add_versions(absl::StrCat(served->version));
        const ModelInfo& info = (*model)->model->info();
        for (const auto& tensor : InputsOf(info)) ToMetadata(tensor, response->add_inputs());
        for (const auto& tensor : OutputsOf(info)) ToMetadata(tensor, response->add_outputs());
        return absl::OkStatus();
      });
}

void HandleModelConfig(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      exchange, [&](const auto& request, auto* response) {
        auto model = FindModel(serving, request.name(), request.version(), &exchange->facts);
        if (!model.ok()) return model.status();
        auto* config = response->mutable_config();
        config->set_name((*model)->name);
        config->set_platform("attend");
        config->set_backend("attend");
        const ModelInfo& info = (*model)->model->info();
        for (const TensorShape& tensor : InputsOf(info)) {
          auto* input = config->add_input();
          input->set_name(tensor.name);
          input->set_data_type(tensor.type);
          input->mutable_dims()->Add(tensor.shape.begin(), tensor.shape.end());
          input->set_optional(tensor.optional);
        }
        for (const TensorShape& tensor : OutputsOf(info)) {
          auto* output = config->add_output();
          output->set_name(tensor.name);
          output->set_data_type(tensor.type);
          output->mutable_dims()->Add(tensor.shape.begin(), tensor.shape.end());
        }
        return absl::OkStatus();
      });
}

void HandleModelStatistics(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      exchange, [&](const auto& request, auto* response) {
        auto models = ModelsOf(serving, request.name(), request.version(), &exchange->facts);
        if (!models.ok()) return models.status();
        for (const auto& model : *models) {
          ModelCounts counts;
          if (serving.statistics) counts = serving.statistics->Of(model->name, model->version);
          ToStatistics(*model, counts, response->add_model_stats());
        }
        return absl::OkStatus();
      });
}

void HandleRepositoryIndex(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  Respond<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      exchange, [&](const auto&, auto* response) {
        for (const auto& model : serving.registry->List()) {
          auto* index = response->add_models();
          index->set_name(model->name);
          index->set_version(absl::StrCat(model->version));
          index->set_state("READY");
        }
        return absl::OkStatus();
      });
}

void HandleRepositoryModelLoad(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  inference::RepositoryModelLoadRequest request;
  absl::Status status = Parse(exchange->body, &request);
  if (!serving.repository) status.Update(LoadingIsOff());
  if (!request.parameters().empty()) {
    status.Update(absl::InvalidArgumentError(
        "parameters: a model is loaded as its repository has it; none can be given"));
  }
  if (!status.ok()) return exchange->Finish(status);
  serving.repository->Load(request.model_name(),
                           FinishWith<inference::RepositoryModelLoadResponse>(std::move(exchange)));
}

void HandleRepositoryModelUnload(const Serving& serving, std::shared_ptr<Exchange> exchange) {
  inference::RepositoryModelUnloadRequest request;
  absl::Status status = Parse(exchange->body, &request);
  if (!serving.repository) status.Update(LoadingIsOff());
  if (!status.ok()) return exchange->Finish(status);
  serving.repository->Unload(
      request.model_name(),
      FinishWith<inference::RepositoryModelUnloadResponse>(std::move(exchange)));
}

}  // namespace attend

#include "fake_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "client/tensors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace attend::client {
namespace {

void Describe(v1::ModelInfo* info) {
  info->set_name("fake");
  info->set_version("7");
  info->set_kind("attention");
  info->set_d_f(3);
  info->set_d_out(3);
  info->set_num_heads(1);
  info->set_normalizer("softmax");
  for (const char* feature : {"a", "position", "b"}) info->add_feature_names(feature);
  for (const char* name : {"The", "cat", "it"}) {
    v1::NamedItem* item = info->add_item_names();
    item->set_name(name);
    for (float feature : {1.f, -1.f, 2.f}) item->add_features(feature);
  }
}

}  // namespace

FakeServer::FakeServer(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("localhost:0", credentials, &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeServer::target() const { return "localhost:" + std::to_string(port_); }

void FakeServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void FakeServer::FailNext(const grpc::Status& status, int times) {
  std::lock_guard lock(mutex_);
  failure_ = status;
  failures_left_ = times;
}

std::vector<v1::AttendRequest> FakeServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

grpc::Status FakeServer::Attend(grpc::ServerContext*, const v1::AttendRequest* request,
                                v1::AttendResponse* response) {
  {
    std::lock_guard lock(mutex_);
    requests_.push_back(*request);
    if (failures_left_ > 0) {
      --failures_left_;
      return failure_;
    }
  }
  if (request->model() != "fake") {
    return {grpc::StatusCode::NOT_FOUND, "no model '" + request->model() + "', served: fake"};
  }
  const int64_t n = request->items().shape(0);
  response->set_request_id(request->request_id().empty() ? "made" : request->request_id());
  response->set_model("fake");
  response->set_version("7");
  response->mutable_timing()->set_queue_us(11);
  response->mutable_timing()->set_compute_us(22);
  response->mutable_timing()->set_batch_requests(1);
  response->mutable_timing()->set_batch_items(n);
  for (int want : request->want()) {
    if (want == v1::VALUES) *response->mutable_values() = request->items();
    if (want != v1::WEIGHTS) continue;
    std::vector<float> weights(n * n, 0.f);
    for (int64_t i = 0; i < n; ++i) {
      weights[i * n + i] = 0.25f;
      if (i > 0) weights[i * n + i - 1] = 0.75f;
    }
    SetFloats({1, n, n}, weights, response->mutable_weights());
  }
  return grpc::Status::OK;
}

void FakeServer::BreakNextStreamAfter(int answers) {
  std::lock_guard lock(mutex_);
  answers_before_break_ = answers;
}

grpc::Status FakeServer::AttendStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::AttendResponse, v1::AttendRequest>* stream) {
  int answers_left;
  {
    std::lock_guard lock(mutex_);
    answers_left = std::exchange(answers_before_break_, -1);
  }
  v1::AttendRequest request;
  while (stream->Read(&request)) {
    if (answers_left-- == 0) return {grpc::StatusCode::UNAVAILABLE, "broken"};
    v1::AttendResponse response;
    const grpc::Status status = Attend(context, &request, &response);
    if (!status.ok()) {
      response.Clear();
      response.set_request_id(request.request_id());
      response.mutable_error()->ParseFromString(status.error_details());
      response.mutable_error()->set_code(status.error_code());
      response.mutable_error()->set_message(status.error_message());
    }
    stream->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                                    v1::ListModelsResponse* response) {
  Describe(response->add_models());
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                                  v1::ModelInfo* response) {
  if (request->model() != "fake") return {grpc::StatusCode::NOT_FOUND, "no such model"};
  Describe(response);
  return grpc::Status::OK;
}

grpc::Status QueueFull() {
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
  details.set_message("queue full");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  google::rpc::ErrorInfo info;
  info.set_reason("queue_full");
  details.add_details()->PackFrom(info);
  details.add_details()->PackFrom(retry);
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full", details.SerializeAsString()};
}

}  // namespace attend::client

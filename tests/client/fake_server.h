// An Attend server without attention: says what the test tells it to, over real gRPC.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"

namespace attend::client {

// Serves the model "fake" (d_f = 3, one head, items "The", "cat", "it", features "a", "position",
// "b"): values are the items, weights [1, N, N] give 0.75 to the item before and 0.25 to oneself.
// Any other model is NOT_FOUND, or what `failure` says. Thread-safe.
class FakeServer : public v1::Attention::Service {
 public:
  // On a free port of localhost.
  explicit FakeServer(const std::shared_ptr<grpc::ServerCredentials>& credentials =
                          grpc::InsecureServerCredentials());
  ~FakeServer() override;

  std::string target() const;
  void SetServing(bool serving);
  // Attend fails with this status for the next `times` calls.
  void FailNext(const grpc::Status& status, int times);
  // The next stream breaks with UNAVAILABLE after so many answers.
  void BreakNextStreamAfter(int answers);
  std::vector<v1::AttendRequest> requests() const;

  grpc::Status Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                      v1::AttendResponse* response) override;
  // Answers the requests in turn by Attend.
  grpc::Status AttendStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::AttendResponse, v1::AttendRequest>* stream) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::ModelInfo* response) override;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::vector<v1::AttendRequest> requests_;
  grpc::Status failure_;
  int failures_left_ = 0;
  int answers_before_break_ = -1;
};

// RESOURCE_EXHAUSTED "queue full" with RetryInfo of 1.5 s and ErrorInfo "queue_full".
grpc::Status QueueFull();

}  // namespace attend::client

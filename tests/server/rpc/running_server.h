// A whole server in this process, for tests that speak gRPC to it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"
#include "core/attention_parameters.h"
#include "server/batching/batcher.h"
#include "server/batching/model_registry.h"
#include "server/rpc/grpc_server.h"
#include "tests/server/batching/fakes.h"

namespace attend {

// A model that computes as `inner` does, but each of its tiles first passes the gate, and `failure`
// takes the place of every answer while it is set.
class GatedModel : public Model {
 public:
  explicit GatedModel(std::unique_ptr<const Model> inner) : inner_(std::move(inner)) {}

  const ModelInfo& info() const override { return inner_->info(); }
  absl::Status Check(const SequenceInput& input) const override { return inner_->Check(input); }
  double Cost(int64_t num_items, bool causal) const override {
    return inner_->Cost(num_items, causal);
  }
  absl::StatusOr<std::shared_ptr<Job>> Forward(PackedBatch batch, SequenceDone done) const override;

  mutable Gate gate;
  absl::Status failure;

 private:
  std::unique_ptr<const Model> inner_;
};

struct SmallModelOptions {
  int64_t d_f = 4, num_heads = 2, max_sequence_length = 64;
};
// d_k = d_v = 2; weights that are small and not all alike; d_out = 2 H.
std::unique_ptr<const Model> MakeSmallModel(const SmallModelOptions& options = {});

class RecordingExchanges : public ExchangeObserver {
 public:
  struct Record {
    ExchangeFacts facts;
    absl::Status status;
  };
  void OnExchange(const ExchangeFacts& facts, const absl::Status& status) override;
  std::vector<Record> records() const;

 private:
  mutable Mutex mutex_;
  std::vector<Record> records_ ABSL_GUARDED_BY(mutex_);
};

// Serves the model "small" version 1, gated. One worker, so that what comes while a tile is held
// waits.
class RunningServer {
 public:
  struct Options {
    Options() { batcher.threads = 1; }
    BatcherOptions batcher;
    int64_t max_message_bytes = int64_t{1} << 20;
    SmallModelOptions model;
  };
  explicit RunningServer(const Options& options = {});
  ~RunningServer();

  v1::Attention::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  GatedModel& model() { return *model_; }
  ModelRegistry& registry() { return registry_; }
  Batcher& batcher() { return *batcher_; }
  GrpcServer& grpc() { return *grpc_; }
  RecordingExchanges& exchanges() { return exchanges_; }

 private:
  ModelRegistry registry_;
  GatedModel* model_ = nullptr;
  BatchObserver observer_;
  RecordingExchanges exchanges_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<GrpcServer> grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Attention::Stub> stub_;
};

// Asks `model` about N items of d_f features that differ by `seed`.
v1::AttendRequest MakeQuestion(int64_t n, int64_t d_f = 4, int seed = 1,
                               const std::string& model = "small");

// A unary call of any bytes; the answer's bytes.
std::string CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                    const std::string& bytes, grpc::Status* status);

// One call on a thread of its own.
class PendingCall {
 public:
  PendingCall(RunningServer& server, v1::AttendRequest request,
              std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  ~PendingCall();
  void Cancel() { context_.TryCancel(); }
  // Waits for the end.
  const grpc::Status& status();
  const v1::AttendResponse& response();
  const grpc::ClientContext& context() const { return context_; }

 private:
  grpc::ClientContext context_;
  v1::AttendResponse response_;
  grpc::Status status_;
  std::thread thread_;
};

}  // namespace attend

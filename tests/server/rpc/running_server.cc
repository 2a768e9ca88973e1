#include "tests/server/rpc/running_server.h"

#include <grpcpp/generic/generic_stub.h>

#include <cmath>
#include <utility>

namespace attend {
namespace {

class GatedJob : public Job {
 public:
  GatedJob(std::shared_ptr<Job> inner, Gate& gate) : inner_(std::move(inner)), gate_(gate) {}
  int64_t runnable() const override { return inner_->runnable(); }
  bool Claim(Tile* tile) override { return inner_->Claim(tile); }
  void Run(const Tile& tile, Workspace& workspace) override {
    gate_.Enter();
    inner_->Run(tile, workspace);
  }
  void Fail(const Tile& tile, const absl::Status& status) override { inner_->Fail(tile, status); }
  int64_t Finish(const Tile& tile) override { return inner_->Finish(tile); }
  bool exhausted() const override { return inner_->exhausted(); }
  void Cancel(int64_t b) override { inner_->Cancel(b); }

 private:
  const std::shared_ptr<Job> inner_;
  Gate& gate_;
};

FloatBuffer Weights(int64_t rows, int64_t columns, int seed) {
  FloatBuffer weights(rows * columns);
  for (int64_t i = 0; i < weights.size(); ++i) {
    weights.data()[i] = std::sin(static_cast<float>(i * 7 + seed)) / 4;
  }
  return weights;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Job>> GatedModel::Forward(PackedBatch batch,
                                                         SequenceDone done) const {
  auto job = inner_->Forward(std::move(batch), [this, done = std::move(done)](
                                                   int64_t b, absl::StatusOr<SequenceOutput> o) {
    failure.ok() ? done(b, std::move(o)) : done(b, failure);
  });
  if (!job.ok()) return job;
  return std::make_shared<GatedJob>(*std::move(job), gate);
}

std::unique_ptr<const Model> MakeSmallModel(const SmallModelOptions& options) {
  AttentionConfig config;
  config.d_f = options.d_f;
  config.d_k = config.d_v = 2;
  config.num_heads = config.num_key_heads = options.num_heads;
  config.max_sequence_length = options.max_sequence_length;
  AttentionWeights weights;
  const int64_t rows = options.num_heads * 2;
  weights.query_weight = Weights(rows, options.d_f, 1);
  weights.key_weight = Weights(rows, options.d_f, 2);
  weights.value_weight = Weights(rows, options.d_f, 3);
  weights.d_out = rows;
  auto model = MakeAttentionModel(std::move(config), std::move(weights));
  return *std::move(model);
}

void RecordingExchanges::OnExchange(const ExchangeFacts& facts, const absl::Status& status) {
  MutexLock lock(&mutex_);
  records_.push_back({facts, status});
}

std::vector<RecordingExchanges::Record> RecordingExchanges::records() const {
  MutexLock lock(&mutex_);
  return records_;
}

RunningServer::RunningServer(const Options& options) {
  auto model = std::make_unique<GatedModel>(MakeSmallModel(options.model));
  model_ = model.get();
  registry_.Put(std::make_shared<ServedModel>(ServedModel{"small", 1, std::move(model), {}}));
  batcher_ = std::make_unique<Batcher>(options.batcher, &observer_);
  const Serving serving = {&registry_, batcher_.get(), options.max_message_bytes};
  grpc_ = *GrpcServer::Start({"localhost:0"}, serving, &exchanges_);
  grpc_->SetServing(true);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ =
      grpc::CreateCustomChannel(grpc_->address(), grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::Attention::NewStub(channel_);
}

RunningServer::~RunningServer() {
  model_->gate.Open();
  batcher_->Drain();
  batcher_->WaitDrained(Clock::now() + std::chrono::minutes(1));
}

v1::AttendRequest MakeQuestion(int64_t n, int64_t d_f, int seed, const std::string& model) {
  v1::AttendRequest request;
  request.set_model(model);
  v1::Tensor* items = request.mutable_items();
  items->add_shape(n);
  items->add_shape(d_f);
  for (int64_t i = 0; i < n * d_f; ++i) {
    items->add_values(std::cos(static_cast<float>(i * 3 + seed)));
  }
  return request;
}

std::string CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                    const std::string& bytes, grpc::Status* status) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, status, &queue);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice answer;
  if (!status->ok() || !response.DumpToSingleSlice(&answer).ok()) return "";
  return std::string(answer.begin(), answer.end());
}

PendingCall::PendingCall(RunningServer& server, v1::AttendRequest request,
                         std::optional<std::chrono::milliseconds> timeout) {
  if (timeout) context_.set_deadline(std::chrono::system_clock::now() + *timeout);
  thread_ = std::thread([this, &server, request = std::move(request)] {
    status_ = server.stub().Attend(&context_, request, &response_);
  });
}

PendingCall::~PendingCall() {
  if (thread_.joinable()) thread_.join();
}

const grpc::Status& PendingCall::status() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

const v1::AttendResponse& PendingCall::response() {
  status();
  return response_;
}

}  // namespace attend

#include "client/load/grpc_transport.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client/load/request_body.h"

namespace attend::client {
namespace {

using SteadyClock = std::chrono::steady_clock;

class RealClock : public LoadClock {
 public:
  nanoseconds now() override { return SteadyClock::now() - start_; }
  void SleepUntil(nanoseconds time) override {
    const nanoseconds since_boot = (start_ + time).time_since_epoch();
    const timespec until{.tv_sec = since_boot.count() / 1'000'000'000,
                         .tv_nsec = since_boot.count() % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }

 private:
  const SteadyClock::time_point start_ = SteadyClock::now();
};

struct OpenCall {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  grpc::ByteBuffer answer;
  grpc::Status status;
  LoadTransport::Done done;
};

nanoseconds ThreadCpu(std::thread& thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) == 0) clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

class GrpcTransport : public LoadTransport {
 public:
  GrpcTransport(const LoadTarget& target,
                const std::vector<std::shared_ptr<grpc::Channel>>& channels)
      : max_open_calls_(target.max_open_calls),
        method_(target.protocol == Protocol::kOip ? "/inference.GRPCInferenceService/ModelInfer"
                                                  : "/attend.v1.Attention/Attend"),
        bodies_(target.protocol, target.request, {target.longest, target.d_f, target.seed}) {
    for (const auto& channel : channels) stubs_.emplace_back(channel);
    for (int t = 0; t < target.threads; ++t) {
      queues_.push_back(std::make_unique<grpc::CompletionQueue>());
      receivers_.emplace_back([this, queue = queues_.back().get()] { Receive(queue); });
    }
  }
  ~GrpcTransport() override {
    for (auto& queue : queues_) queue->Shutdown();
    for (std::thread& receiver : receivers_) receiver.join();
  }

  void Send(const LoadCall& call, nanoseconds time_left, Done done) override {
    const uint64_t turn = WaitForTurn();
    auto* open = new OpenCall;
    open->done = std::move(done);
    open->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::duration_cast<std::chrono::microseconds>(time_left));
    open->reader = stubs_[turn % stubs_.size()].PrepareUnaryCall(
        &open->context, method_, bodies_.Body(call.items, call.priority),
        queues_[turn % queues_.size()].get());
    open->reader->StartCall();
    open->reader->Finish(&open->answer, &open->status, open);
  }

  void WaitIdle() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_calls_ == 0; });
  }

  nanoseconds BusiestThreadCpu() override {
    nanoseconds most{0};
    for (std::thread& receiver : receivers_) most = std::max(most, ThreadCpu(receiver));
    return most;
  }

  int64_t SendsThatWaited() override {
    std::lock_guard lock(mutex_);
    return sends_that_waited_;
  }

 private:
  // Counts one more open call; a receiver must not wait for itself.
  uint64_t WaitForTurn() {
    std::unique_lock lock(mutex_);
    const bool receiver = std::any_of(receivers_.begin(), receivers_.end(), [](const auto& thread) {
      return thread.get_id() == std::this_thread::get_id();
    });
    if (!receiver && open_calls_ >= max_open_calls_) {
      ++sends_that_waited_;
      changed_.wait(lock, [this] { return open_calls_ < max_open_calls_; });
    }
    ++open_calls_;
    return turn_++;
  }

  void Receive(grpc::CompletionQueue* queue) {
    void* tag;
    bool ok;
    while (queue->Next(&tag, &ok)) {
      const std::unique_ptr<OpenCall> call(static_cast<OpenCall*>(tag));
      LoadReply reply{.code = static_cast<absl::StatusCode>(call->status.error_code())};
      if (call->status.ok() && !bodies_.ReadAnswer(&call->answer, &reply)) {
        reply.code = absl::StatusCode::kInternal;
      }
      call->done(reply);
      std::lock_guard lock(mutex_);
      --open_calls_;
      if (open_calls_ == 0 || open_calls_ == max_open_calls_ - 1) changed_.notify_all();
    }
  }

  const int max_open_calls_;
  const std::string method_;
  const RequestBodies bodies_;
  std::vector<grpc::GenericStub> stubs_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_;
  std::vector<std::thread> receivers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_calls_ = 0;
  int64_t sends_that_waited_ = 0;
  uint64_t turn_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadTransport>> MakeGrpcTransport(const LoadTarget& target) {
  constexpr std::chrono::seconds kConnect(5);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int c = 0; c < target.channels; ++c) {
    ChannelOptions options = target.channel;
    options.connection_group = c;
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options);
    if (!channel.ok()) return channel.status();
    (*channel)->WaitForConnected(std::chrono::system_clock::now() + kConnect);
    channels.push_back(*std::move(channel));
  }
  return std::make_unique<GrpcTransport>(target, channels);
}

std::unique_ptr<LoadClock> MakeRealClock() { return std::make_unique<RealClock>(); }

}  // namespace attend::client

// A clock that tests move, and a model whose tiles compute nothing but wait where tests want it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/model.h"
#include "core/mutex.h"
#include "server/batching/batch_observer.h"
#include "server/batching/model_registry.h"
#include "server/batching/pending_request.h"

namespace attend {

class FakeClock {
 public:
  Clock::time_point now() const { return now_.load(); }
  void Advance(Clock::duration by) { now_.store(now_.load() + by); }
  std::function<Clock::time_point()> source() {
    return [this] { return now(); };
  }

 private:
  std::atomic<Clock::time_point> now_{Clock::time_point(std::chrono::hours(1))};
};

// Open at first. What enters while it is closed waits until it is opened.
class Gate {
 public:
  void Close() {
    MutexLock lock(&mutex_);
    open_ = false;
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Enter() {
    MutexLock lock(&mutex_);
    ++entered_;
    changed_.notify_all();
    while (!open_) changed_.wait(mutex_);
  }
  // Returns when `count` have entered since the gate was made.
  void AwaitEntered(int64_t count) {
    MutexLock lock(&mutex_);
    while (entered_ < count) changed_.wait(mutex_);
  }
  int64_t entered() const {
    MutexLock lock(&mutex_);
    return entered_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t entered_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One tile a sequence, of the sequence's own cost. Its value is twice its first feature.
class FakeJob : public Job {
 public:
  using BeforeTile = std::function<void(const SequenceInput&)>;

  FakeJob(PackedBatch batch, SequenceDone done, std::vector<double> costs, BeforeTile before)
      : batch_(std::move(batch)),
        done_(std::move(done)),
        costs_(std::move(costs)),
        before_(std::move(before)),
        cancelled_(costs_.size()) {}

  int64_t runnable() const override { return size() - claimed_; }
  bool Claim(Tile* tile) override {
    if (claimed_ == size()) return false;
    *tile = {0, claimed_, costs_[claimed_]};
    ++claimed_;
    return true;
  }
  void Run(const Tile& tile, Workspace&) override {
    const int64_t b = tile.index;
    if (cancelled_[b]) return done_(b, absl::CancelledError("left out"));
    const SequenceInput& input = batch_.sequence(b);
    before_(input);
    if (cancelled_[b]) return done_(b, absl::CancelledError("cancelled"));
    SequenceOutput output;
    output.values = FloatBuffer(1);
    output.values.data()[0] = 2 * input.items.row(0)[0];
    done_(b, std::move(output));
  }
  void Fail(const Tile& tile, const absl::Status& status) override { done_(tile.index, status); }
  int64_t Finish(const Tile&) override {
    ++finished_;
    return 0;
  }
  bool exhausted() const override { return finished_ == size(); }
  void Cancel(int64_t b) override { cancelled_[b] = true; }

 private:
  int32_t size() const { return static_cast<int32_t>(costs_.size()); }

  const PackedBatch batch_;
  const SequenceDone done_;
  const std::vector<double> costs_;
  const BeforeTile before_;
  std::vector<std::atomic<bool>> cancelled_;
  int32_t claimed_ = 0, finished_ = 0;
};

// A sequence of N items costs N FLOP.
class FakeModel : public Model {
 public:
  FakeModel() {
    info_.kind = "fake";
    info_.d_f = info_.d_out = 1;
  }
  const ModelInfo& info() const override { return info_; }
  absl::Status Check(const SequenceInput&) const override { return absl::OkStatus(); }
  double Cost(int64_t num_items, bool) const override { return static_cast<double>(num_items); }
  absl::StatusOr<std::shared_ptr<Job>> Forward(PackedBatch batch,
                                               SequenceDone done) const override {
    if (!forward_status.ok()) return forward_status;
    if (on_forward) on_forward();
    std::vector<double> costs;
    for (int64_t b = 0; b < batch.num_sequences(); ++b) {
      costs.push_back(Cost(batch.sequence(b).num_items(), false));
    }
    ++forwards;
    return std::make_shared<FakeJob>(std::move(batch), std::move(done), std::move(costs),
                                     [this](const SequenceInput& input) {
                                       gate.Enter();
                                       if (on_tile) on_tile(input);
                                     });
  }

  absl::Status forward_status;
  std::function<void()> on_forward;
  std::function<void(const SequenceInput&)> on_tile;
  mutable Gate gate;  // every tile that is computed passes it
  mutable std::atomic<int> forwards{0};

 private:
  ModelInfo info_;
};

struct Served {
  FakeModel* fake = nullptr;
  std::shared_ptr<const ServedModel> model;
};

// Costs a millisecond an item.
inline Served ServeFake(const std::string& name, int64_t version = 1,
                        const ModelBatchingOptions& batching = {}) {
  auto fake = std::make_unique<FakeModel>();
  Served served{fake.get(), nullptr};
  served.model = std::make_shared<ServedModel>(
      ServedModel{name, version, std::move(fake), batching,
                  std::make_shared<CostModel>(CostCurve{0, 1e-3, 0})});
  return served;
}

// What became of a request.
class Fate {
 public:
  Completion completion() {
    return [this](absl::StatusOr<Answer> answer) {
      MutexLock lock(&mutex_);
      ++times_;
      status_ = answer.status();
      if (answer.ok()) answer_ = *std::move(answer);
      changed_.notify_all();
    };
  }
  void Await() {
    MutexLock lock(&mutex_);
    while (times_ == 0) changed_.wait(mutex_);
  }
  int times() const {
    MutexLock lock(&mutex_);
    return times_;
  }
  absl::Status status() const {
    MutexLock lock(&mutex_);
    return status_;
  }
  float value() const {
    MutexLock lock(&mutex_);
    return answer_.output.values.empty() ? -1 : answer_.output.values.data()[0];
  }
  RequestTiming timing() const {
    MutexLock lock(&mutex_);
    return answer_.timing;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int times_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("not completed");
  Answer answer_ ABSL_GUARDED_BY(mutex_);
};

// A request of `items` items whose first feature is `value`.
inline PendingRequest MakeRequest(const Served& served, int64_t items, float value, Fate& fate,
                                  Clock::time_point arrival) {
  auto numbers = std::make_shared<std::vector<float>>(items, value);
  PendingRequest request;
  request.model = served.model;
  request.input.items = MatrixView<const float>(numbers->data(), items, 1);
  request.bytes = items * static_cast<int64_t>(sizeof(float));
  request.storage = std::move(numbers);
  request.arrival = arrival;
  request.done = fate.completion();
  return request;
}

class RecordingObserver : public BatchObserver {
 public:
  void OnBatchStarted(const BatchFacts& facts) override {
    MutexLock lock(&mutex_);
    batches_.push_back(facts.requests);
  }
  void OnBatchFinished(const BatchCostFacts& facts) override {
    MutexLock lock(&mutex_);
    measured_.push_back(facts.measured);
  }
  void OnRequestComputed(const RequestFacts&) override { ++computed; }
  void OnRequestRefused(const std::string&, RefusalReason reason) override {
    MutexLock lock(&mutex_);
    refusals_.push_back(reason);
  }
  void OnStalled(bool stalled) override {
    MutexLock lock(&mutex_);
    stalls_.push_back(stalled);
  }
  std::vector<bool> stalls() const {
    MutexLock lock(&mutex_);
    return stalls_;
  }
  std::vector<std::chrono::nanoseconds> measured() const {
    MutexLock lock(&mutex_);
    return measured_;
  }
  std::vector<int64_t> batches() const {
    MutexLock lock(&mutex_);
    return batches_;
  }
  std::vector<RefusalReason> refusals() const {
    MutexLock lock(&mutex_);
    return refusals_;
  }
  std::atomic<int> computed{0};

 private:
  mutable Mutex mutex_;
  std::vector<int64_t> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::chrono::nanoseconds> measured_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> stalls_ ABSL_GUARDED_BY(mutex_);
  std::vector<RefusalReason> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend

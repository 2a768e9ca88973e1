// A batch's job as the executor sees it: the model's own, timed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/job.h"
#include "server/batching/pending_request.h"

namespace attend {

// What the calling thread has computed so far. A tile is measured by it, not by the clock: what
// others did on the worker's CPU meanwhile is not the tile's cost.
using ThreadTime = std::function<std::chrono::nanoseconds()>;

// Keeps the model alive until its job is gone, and adds up what the job's tiles take.
class BatchJob : public Job {
 public:
  struct Measured {
    double seconds = 0;  // computed, summed over the tiles
    double elapsed = 0;  // by the clock, summed over the tiles
    double flop = 0;     // of these tiles, those left out after Cancel included
    bool whole = true;   // nothing was left out or failed
  };
  // `ended` is called once, when the job is let go; without any lock.
  BatchJob(std::shared_ptr<const ServedModel> model, std::shared_ptr<Job> job,
           ThreadTime thread_time, std::function<Clock::time_point()> now,
           std::function<void(const Measured&)> ended)
      : model_(std::move(model)),
        job_(std::move(job)),
        thread_time_(std::move(thread_time)),
        now_(std::move(now)),
        ended_(std::move(ended)) {}
  ~BatchJob() override {
    ended_({static_cast<double>(computed_.load()) * 1e-9,
            static_cast<double>(elapsed_.load()) * 1e-9, flop_, !disturbed_.load()});
  }

  int64_t runnable() const override { return job_->runnable(); }
  bool Claim(Tile* tile) override { return job_->Claim(tile); }
  void Run(const Tile& tile, Workspace& workspace) override {
    const Clock::time_point begun = now_();
    const std::chrono::nanoseconds start = thread_time_();
    job_->Run(tile, workspace);
    computed_ += (thread_time_() - start).count();
    elapsed_ += std::chrono::nanoseconds(now_() - begun).count();
  }
  void Fail(const Tile& tile, const absl::Status& status) override {
    disturbed_ = true;
    job_->Fail(tile, status);
  }
  int64_t Finish(const Tile& tile) override {
    flop_ += tile.cost;
    return job_->Finish(tile);
  }
  bool exhausted() const override { return job_->exhausted(); }
  void Cancel(int64_t b) override {
    disturbed_ = true;
    job_->Cancel(b);
  }

 private:
  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<Job> job_;
  const ThreadTime thread_time_;
  const std::function<Clock::time_point()> now_;
  const std::function<void(const Measured&)> ended_;
  std::atomic<int64_t> computed_{0}, elapsed_{0};  // nanoseconds
  double flop_ = 0;                                // guarded by the executor's lock
  std::atomic<bool> disturbed_{false};
};

}  // namespace attend

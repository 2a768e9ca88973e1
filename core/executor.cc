#include "core/executor.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <list>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/cpu_quota.h"
#include "core/mutex.h"
#include "core/onednn_runtime.h"
#include "core/workspace.h"

namespace attend {
namespace {

constexpr double kNoKey = std::numeric_limits<double>::infinity();

struct OpenJob {
  std::shared_ptr<Job> job;
  Rank rank;
  double job_cost = 0;
  double claimed = 0;  // FLOP

  double Served() const { return job_cost > 0 ? rank.cost * (claimed / job_cost) : rank.cost; }
  double Key() const {
    return rank.start + rank.handicap + std::min(rank.cost, Served() + rank.quantum);
  }
};

using OpenJobs = std::list<OpenJob>;

// The executor whose worker this thread is.
thread_local const void* t_executor = nullptr;

// What oneDNN and the allocator throw becomes the status of the sequences concerned.
absl::Status RunCatching(Job& job, const Tile& tile, Workspace& workspace) {
  try {
    job.Run(tile, workspace);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while computing");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("computing failed: ", e.what()));
  }
}

}  // namespace

struct Executor::Impl {
  explicit Impl(const ExecutorOptions& options) : source(options.source) {}

  void Work();
  // The job whose tile goes next, or end().
  OpenJobs::iterator Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RunTile(OpenJobs::iterator open, Workspace& workspace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void AdvanceClock(const OpenJob& open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  JobSource* const source;
  std::vector<std::thread> threads;

  mutable Mutex mutex;
  CondVar work;
  CondVar idle;
  OpenJobs jobs ABSL_GUARDED_BY(mutex);
  Load load ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  // Written under the mutex, read without.
  std::atomic<int> sleeping{0};
  std::atomic<double> virtual_time{0};
};

OpenJobs::iterator Executor::Impl::Choose() {
  auto best = jobs.end();
  for (auto it = jobs.begin(); it != jobs.end(); ++it) {
    if (it->job->runnable() > 0 && (best == jobs.end() || it->Key() < best->Key())) best = it;
  }
  return best;
}

void Executor::Impl::AdvanceClock(const OpenJob& open) {
  const double reached = open.rank.start + open.Served();
  if (reached > virtual_time.load(std::memory_order_relaxed)) virtual_time.store(reached);
}

void Executor::Impl::RunTile(OpenJobs::iterator open, Workspace& workspace) {
  Tile tile;
  if (!open->job->Claim(&tile)) return;
  open->claimed += tile.cost;
  AdvanceClock(*open);
  ++load.busy_workers;
  if (sleeping.load(std::memory_order_relaxed) > 0 && Choose() != jobs.end()) work.notify_one();

  mutex.Unlock();
  Job& job = *open->job;
  const absl::Status status = RunCatching(job, tile, workspace);
  if (!status.ok()) job.Fail(tile, status);
  mutex.Lock();

  --load.busy_workers;
  ++load.tiles_done;
  load.flop_done += tile.cost;
  job.Finish(tile);
  if (!job.exhausted()) return;
  // A job's end frees memory: not under the lock.
  OpenJobs done;
  done.splice(done.begin(), jobs, open);
  load.open_jobs = static_cast<int64_t>(jobs.size());
  if (jobs.empty()) {
    idle.notify_all();
    if (stopping) work.notify_all();
  }
  mutex.Unlock();
  done.clear();
  mutex.Lock();
}

void Executor::Impl::Sleep() {
  // Sequentially consistent with Wake: either the waker sees a sleeper, or this worker's last look
  // at the source saw the work.
  sleeping.fetch_add(1);
  const bool missed = source != nullptr && source->Wants(kNoKey) && !stopping;
  if (!missed) work.wait(mutex);
  sleeping.fetch_sub(1);
}

void Executor::Impl::Work() {
  InitComputeThread();
  t_executor = this;
  Workspace workspace;
  bool pump_was_dry = false;
  mutex.Lock();
  while (true) {
    const auto next = Choose();
    const bool none = next == jobs.end();
    if (source != nullptr && !stopping && !pump_was_dry &&
        source->Wants(none ? kNoKey : next->Key())) {
      mutex.Unlock();
      pump_was_dry = !source->Pump();
      mutex.Lock();
      continue;
    }
    pump_was_dry = false;
    if (!none) {
      RunTile(next, workspace);
    } else if (stopping && jobs.empty()) {
      break;
    } else {
      Sleep();
    }
  }
  mutex.Unlock();
}

Executor::Executor(const ExecutorOptions& options) : impl_(std::make_unique<Impl>(options)) {
  const int count = options.threads > 0 ? options.threads : UsableCpus();
  const std::vector<int> cpus = CpusToPin(count);
  for (int i = 0; i < count; ++i) {
    impl_->threads.emplace_back([this] { impl_->Work(); });
    if (!cpus.empty()) PinThread(impl_->threads.back(), cpus[i]);
  }
}

Executor::~Executor() {
  {
    MutexLock lock(&impl_->mutex);
    impl_->stopping = true;
    impl_->work.notify_all();
  }
  for (std::thread& thread : impl_->threads) thread.join();
}

void Executor::Submit(std::shared_ptr<Job> job, const Rank& rank, double job_cost) {
  MutexLock lock(&impl_->mutex);
  if (job->exhausted()) return;
  impl_->jobs.push_back({std::move(job), rank, job_cost});
  impl_->load.open_jobs = static_cast<int64_t>(impl_->jobs.size());
  // A worker that submits takes a tile itself, and wakes another if there are more.
  if (t_executor != impl_.get()) impl_->work.notify_one();
}

void Executor::Wake() {
  if (impl_->sleeping.load() == 0) return;
  MutexLock lock(&impl_->mutex);
  impl_->work.notify_one();
}

void Executor::WaitIdle() {
  MutexLock lock(&impl_->mutex);
  while (!impl_->jobs.empty()) impl_->idle.wait(impl_->mutex);
}

int Executor::threads() const { return static_cast<int>(impl_->threads.size()); }

Executor::Load Executor::load() const {
  MutexLock lock(&impl_->mutex);
  return impl_->load;
}

double Executor::virtual_time() const { return impl_->virtual_time.load(); }

}  // namespace attend

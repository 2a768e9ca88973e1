#include "server/batching/batcher.h"

#include <absl/functional/function_ref.h>
#include <absl/strings/str_cat.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/cpu_quota.h"
#include "core/memory_limit.h"
#include "core/mutex.h"
#include "server/batching/byte_budget.h"
#include "server/batching/request_queue.h"
#include "server/batching/stall_watch.h"

namespace attend {
namespace {

// Of a worker with nothing to do.
constexpr double kNoKey = std::numeric_limits<double>::infinity();

double Seconds(std::chrono::microseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

// What the allocator and oneDNN throw, as a status.
absl::Status Caught(absl::FunctionRef<void()> work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for this batch");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("starting a batch failed: ", e.what()));
  }
}

int Threads(const BatcherOptions& options) {
  return options.threads > 0 ? options.threads : UsableCpus();
}

int64_t MaxQueuedBytes(const BatcherOptions& options) {
  return options.max_queued_bytes > 0 ? options.max_queued_bytes : UsableMemory() / 4;
}

}  // namespace

std::chrono::nanoseconds ThisThreadsTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

struct Batcher::Impl {
  Impl(const BatcherOptions& options, BatchObserver* observer)
      : options(options),
        observer(observer),
        bytes(MaxQueuedBytes(options)),
        queue(MakeQueueOptions(), observer),
        stall_watch(options.stall_timeout) {}

  QueueOptions MakeQueueOptions();
  bool StartBatch();
  // An error or an exception means that no job was submitted.
  absl::Status Submit(const std::shared_ptr<RunningBatch>& batch,
                      std::vector<SequenceInput> inputs);
  void Execute(Orders orders);
  void RunTimer();
  void ArmTimer();
  void Tick();
  void WatchForStall();
  // When the timer thread has to act next, whatever is enqueued meanwhile.
  Clock::time_point NextLook() const;

  const BatcherOptions options;
  BatchObserver* const observer;
  ByteBudget bytes;
  RequestQueue queue;
  std::optional<Executor> executor;

  Mutex timer_mutex;
  CondVar timer_changed;
  bool stopping ABSL_GUARDED_BY(timer_mutex) = false;
  std::atomic<Clock::time_point> armed{Clock::time_point::max()};

  Mutex stall_mutex;
  StallWatch stall_watch ABSL_GUARDED_BY(stall_mutex);
  std::atomic<Clock::time_point> stall_look{Clock::time_point::min()};

  std::thread timer;
};

QueueOptions Batcher::Impl::MakeQueueOptions() {
  const int workers = Threads(options);
  QueueOptions q;
  q.policy.patience = options.ageing;
  q.policy.class_lead = Seconds(options.ageing) * workers;
  q.limits = {.max_items = options.max_batch_items,
              .max_requests = options.max_batch_requests,
              .max_cost = Seconds(options.max_batch_cost),
              .max_delay = options.max_queue_delay};
  q.max_queued_requests = options.max_queued_requests;
  q.max_queued_cost =
      options.max_queued_cost.count() > 0 ? Seconds(options.max_queued_cost) : workers;
  q.workers = workers;
  q.virtual_time = [this] { return executor->virtual_time(); };
  q.held_bytes = [this] { return bytes.held(); };
  return q;
}

void Batcher::Impl::Execute(Orders orders) {
  for (const Orders::Cancel& order : orders.cancel) order.job->Cancel(order.sequence);
  for (Outcome& outcome : orders.deliver) {
    const ServedModel& model = *outcome.model;
    if (outcome.answer.ok()) {
      const RequestTiming& timing = outcome.answer->timing;
      observer->OnRequestComputed(
          {model.name, model.version, outcome.items, timing.queue, timing.compute});
    } else if (const auto reason = ReasonOf(outcome.answer.status())) {
      observer->OnRequestRefused(model.name, *reason);
    }
    outcome.done(std::move(outcome.answer));
  }
}

bool Batcher::Impl::StartBatch() {
  std::optional<TakenBatch> taken;
  const absl::Status short_of_memory = Caught([&] { taken = queue.Take(options.now()); });
  if (!short_of_memory.ok()) {
    Orders orders;
    queue.EndNext(short_of_memory, options.now(), orders);
    Execute(std::move(orders));
    return true;
  }
  if (!taken) return false;
  const std::shared_ptr<RunningBatch> batch = taken->batch;
  absl::Status status;
  status.Update(Caught([&] { status = Submit(batch, std::move(taken->inputs)); }));
  if (!status.ok()) {
    Orders orders;
    for (int64_t b = 0; b < static_cast<int64_t>(batch->handles.size()); ++b) {
      queue.Finish(*batch, b, status, options.now(), orders);
    }
    Execute(std::move(orders));
  }
  return true;
}

absl::Status Batcher::Impl::Submit(const std::shared_ptr<RunningBatch>& batch,
                                   std::vector<SequenceInput> inputs) {
  const ServedModel& served = *batch->model;
  double flop = 0;
  CostTerms terms;
  for (const SequenceInput& input : inputs) {
    flop += served.model->Cost(input.num_items(), input.causal);
    terms += TermsOf(*served.model, input.num_items(), input.causal);
  }
  observer->OnBatchStarted({served.name, served.version,
                            static_cast<int64_t>(batch->handles.size()), batch->items, flop,
                            Nanoseconds(batch->cost)});
  auto forward =
      served.model->Forward(PackedBatch(std::move(inputs)),
                            [this, batch](int64_t b, absl::StatusOr<SequenceOutput> output) {
                              Orders orders;
                              queue.Finish(*batch, b, std::move(output), options.now(), orders);
                              Execute(std::move(orders));
                            });
  if (!forward.ok()) return forward.status();
  auto job = std::make_shared<BatchJob>(
      batch->model, *std::move(forward), options.thread_time, options.now,
      [this, model = batch->model, cost = batch->cost, terms](const BatchJob::Measured& measured) {
        if (measured.whole) model->cost->Learn(*model->model, terms, measured.seconds);
        queue.LearnStretch(measured.seconds, measured.elapsed);
        observer->OnBatchFinished({model->name, model->version, Nanoseconds(cost),
                                   Nanoseconds(measured.seconds), measured.flop});
      });
  Orders orders;
  queue.Attach(*batch, job, orders);
  Execute(std::move(orders));
  executor->Submit(std::move(job), batch->rank, flop);
  return absl::OkStatus();
}

void Batcher::Impl::Tick() {
  Orders orders;
  queue.Tick(options.now(), orders);
  Execute(std::move(orders));
  executor->Wake();
  WatchForStall();
}

void Batcher::Impl::WatchForStall() {
  if (options.stall_timeout.count() == 0) return;
  const Clock::time_point now = options.now();
  // Often enough that a stall is noticed within a quarter of the timeout.
  stall_look.store(now + options.stall_timeout / 4);
  const Executor::Load load = executor->load();
  MutexLock lock(&stall_mutex);
  const bool work_waits = load.open_jobs > 0 || queue.Wants(kNoKey);
  if (stall_watch.Look(now, load.tiles_done, work_waits)) {
    observer->OnStalled(stall_watch.stalled());
  }
}

Clock::time_point Batcher::Impl::NextLook() const {
  if (options.stall_timeout.count() == 0) return queue.next_look();
  return std::min(queue.next_look(), stall_look.load());
}

void Batcher::Impl::ArmTimer() {
  if (queue.next_look() >= armed.load()) return;
  MutexLock lock(&timer_mutex);
  timer_changed.notify_one();
}

void Batcher::Impl::RunTimer() {
  timer_mutex.Lock();
  while (!stopping) {
    armed.store(NextLook());
    // Whoever enqueues either sees what is armed or is seen by this second look.
    const Clock::time_point next = NextLook();
    if (next < armed.load()) continue;
    const Clock::time_point now = options.now();
    if (next > now) {
      // Half an hour at most: `next` may be the end of time, which clocks can't add up to.
      const Clock::duration wait = std::min<Clock::duration>(next - now, std::chrono::minutes(30));
      timer_changed.wait_for(timer_mutex, wait);
      continue;
    }
    timer_mutex.Unlock();
    Tick();
    timer_mutex.Lock();
  }
  timer_mutex.Unlock();
}

Batcher::Batcher(const BatcherOptions& options, BatchObserver* observer)
    : impl_(std::make_unique<Impl>(options, observer)) {
  impl_->executor.emplace(ExecutorOptions{.threads = Threads(options), .source = this});
  impl_->timer = std::thread([this] { impl_->RunTimer(); });
}

Batcher::~Batcher() {
  Abandon();
  {
    MutexLock lock(&impl_->timer_mutex);
    impl_->stopping = true;
    impl_->timer_changed.notify_one();
  }
  impl_->timer.join();
  impl_->executor.reset();
}

absl::StatusOr<std::shared_ptr<const void>> Batcher::Admit(int64_t bytes) {
  if (bytes > impl_->bytes.limit()) {
    return Refuse(RefusalReason::kTooLarge,
                  absl::StrCat("the request has ", bytes, " bytes; this server holds at most ",
                               impl_->bytes.limit(), " at a time (--max-queued-bytes)"));
  }
  if (absl::Status status = impl_->queue.Admissible(); !status.ok()) return status;
  if (auto held = impl_->bytes.Reserve(bytes)) return held;
  return Refuse(
      RefusalReason::kQueueFull,
      absl::StrCat("the queue is full: ", impl_->bytes.held(), " bytes are held, this request has ",
                   bytes, ", --max-queued-bytes is ", impl_->bytes.limit(), "; try again later"),
      impl_->queue.RetryAfter());
}

RequestHandle Batcher::Enqueue(PendingRequest request) {
  const Model& model = *request.model->model;
  const double cost = request.model->cost->Seconds(
      model, TermsOf(model, request.input.num_items(), request.input.causal));
  Orders orders;
  const RequestHandle handle =
      impl_->queue.Add(std::move(request), cost, impl_->options.now(), orders);
  impl_->Execute(std::move(orders));
  impl_->ArmTimer();
  impl_->executor->Wake();
  return handle;
}

void Batcher::Cancel(RequestHandle handle) {
  Orders orders;
  impl_->queue.Cancel(handle, impl_->options.now(), orders);
  impl_->Execute(std::move(orders));
}

void Batcher::Drain() { impl_->queue.Drain(); }

bool Batcher::WaitDrained(Clock::time_point deadline) { return impl_->queue.WaitEmpty(deadline); }

void Batcher::Abandon() {
  Orders orders;
  impl_->queue.Abandon(impl_->options.now(), orders);
  impl_->Execute(std::move(orders));
}

Executor::Load Batcher::load() const { return impl_->executor->load(); }
QueueFacts Batcher::queue() const { return impl_->queue.facts(); }
QueueFacts Batcher::queue_limits() const {
  const QueueOptions limits = impl_->MakeQueueOptions();
  return {limits.max_queued_requests, 0, Nanoseconds(limits.max_queued_cost), impl_->bytes.limit()};
}
int Batcher::threads() const { return impl_->executor->threads(); }
void Batcher::Tick() { impl_->Tick(); }

bool Batcher::Wants(double next_key) const { return impl_->queue.Wants(next_key); }

bool Batcher::Pump() { return impl_->StartBatch(); }

}  // namespace attend

#include "client/load/load_run.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace attend::client {
namespace {

nanoseconds ThisThreadsCpu() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

LoadRun::LoadRun(const LoadOptions& options, CallSource* calls, LoadClock* clock,
                 LoadTransport* transport)
    : options_(options),
      calls_(calls),
      clock_(clock),
      transport_(transport),
      recorder_(options.warm_up, options.duration, options.window) {}

LoadResult LoadRun::Run() {
  const nanoseconds sender_before = ThisThreadsCpu();
  const nanoseconds receiver_before = transport_->BusiestThreadCpu();
  const int64_t waited_before = transport_->SendsThatWaited();
  if (options_.concurrency > 0) {
    RunClosed();
  } else {
    RunOpen();
  }
  const nanoseconds sent_until = clock_->now();
  transport_->WaitIdle();
  LoadResult result = recorder_.Finish(sent_until, clock_->now());
  result.generator_cpu =
      std::max(ThisThreadsCpu() - sender_before, transport_->BusiestThreadCpu() - receiver_before);
  result.sends_that_waited = transport_->SendsThatWaited() - waited_before;
  return result;
}

void LoadRun::RunOpen() {
  while (!stopped_) {
    const std::optional<LoadCall> call = calls_->Next();
    if (!call) return;
    SleepUntil(std::min(call->at, end()));
    if (stopped_ || call->at >= end()) return;
    Send(*call, nullptr);
  }
}

void LoadRun::SleepUntil(nanoseconds time) {
  constexpr nanoseconds kStep = std::chrono::milliseconds(100);
  for (nanoseconds now = clock_->now(); !stopped_ && now < time; now = clock_->now()) {
    clock_->SleepUntil(std::min(time, now + kStep));
  }
}

void LoadRun::RunClosed() {
  for (int i = 0; i < options_.concurrency; ++i) SendNextClosed();
  SleepUntil(end());
}

void LoadRun::SendNextClosed() {
  std::optional<LoadCall> call;
  {
    std::lock_guard lock(calls_mutex_);
    call = calls_->Next();
  }
  if (!call) return;
  call->at = clock_->now();
  if (stopped_ || call->at >= end()) return;
  Send(*call, [this] { SendNextClosed(); });
}

void LoadRun::Send(const LoadCall& call, std::function<void()> then) {
  const nanoseconds now = clock_->now();
  recorder_.OnSent(call.at, now);
  transport_->Send(call, call.at + call.deadline - now,
                   [this, call, then = std::move(then)](const LoadReply& reply) {
                     recorder_.OnDone(call, reply, clock_->now());
                     if (then) then();
                   });
}

}  // namespace attend::client

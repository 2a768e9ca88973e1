#include "server/drain.h"

#include <algorithm>

#include "server/observe/log.h"

namespace attend {
namespace {

// For the last answers' way out once nothing computes any more.
constexpr std::chrono::seconds kFlushTime{2};
// From the last answer's writing to the closing of its connection: a connection that is closed
// while requests keep coming in drops what its buffers still hold.
constexpr std::chrono::milliseconds kLinger{100};

}  // namespace

Drain::Drain() : signals_([this] { OnSecondSignal(); }) {}

void Drain::OnSecondSignal() {
  MutexLock lock(&mutex_);
  abandoned_ = true;
  if (abandonable_ != nullptr) abandonable_->Abandon();
}

bool Drain::Run(const DrainOptions& options, Batcher& batcher, GrpcServer& server) {
  signals_.WaitFirst();
  server.SetServing(false);
  Log(LogLevel::kInfo, "draining",
      {{"delay_ms", options.delay.count()},
       {"grace_ms", options.grace.count()},
       {"queued", batcher.queue().requests}});
  signals_.WaitSecond(options.delay);

  server.BeginDrain();
  batcher.Drain();
  {
    MutexLock lock(&mutex_);
    if (abandoned_) batcher.Abandon();
    abandonable_ = &batcher;
  }
  const Clock::time_point end = Clock::now() + options.grace;
  const bool computed = batcher.WaitDrained(end);
  if (!computed) batcher.Abandon();
  const bool sent = server.WaitCallsOver(std::max(end, Clock::now() + kFlushTime));
  signals_.WaitSecond(kLinger);

  MutexLock lock(&mutex_);
  abandonable_ = nullptr;
  const bool clean = computed && sent && !abandoned_;
  Log(clean ? LogLevel::kInfo : LogLevel::kWarning, "stopped",
      {{"outcome", abandoned_ ? "second signal, the rest was refused"
                   : computed ? sent ? "all answered" : "some callers did not take their answer"
                              : "grace period over, the rest was refused"}});
  return clean;
}

}  // namespace attend

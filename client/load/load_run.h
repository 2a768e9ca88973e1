// The loops of the load tester, apart from any real time and transport.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "client/load/call.h"
#include "client/load/load_recorder.h"
#include "client/load/workload.h"

namespace attend::client {

// Time from the run's start. Thread-safe.
class LoadClock {
 public:
  virtual ~LoadClock() = default;
  virtual nanoseconds now() = 0;
  // Returns at once when `time` has passed.
  virtual void SleepUntil(nanoseconds time) = 0;
};

// Thread-safe.
class LoadTransport {
 public:
  virtual ~LoadTransport() = default;
  // Starts one call that may take `time_left`; `done` is called once, on any thread, and may call
  // Send. Waits while too many calls are open, but not when called from a `done`.
  using Done = std::function<void(const LoadReply&)>;
  virtual void Send(const LoadCall& call, nanoseconds time_left, Done done) = 0;
  // Returns when no call is open.
  virtual void WaitIdle() = 0;
  // CPU time so far of the busiest thread that carries answers.
  virtual nanoseconds BusiestThreadCpu() = 0;
  // How many sends so far had to wait because too many calls were open.
  virtual int64_t SendsThatWaited() { return 0; }
};

struct LoadOptions {
  nanoseconds warm_up{0};
  nanoseconds duration{0};
  nanoseconds window{0};
  int concurrency = 0;  // 0: open loop; else closed, as many calls open at any time
};

// One run. An open loop sends each call at its own time whatever the answers do, and counts latency
// from that time, so a server that stalls is charged for all the calls it kept waiting (G. Tene's
// "coordinated omission"). A closed loop sends a call when another is answered.
class LoadRun {
 public:
  // All outlive the run.
  LoadRun(const LoadOptions& options, CallSource* calls, LoadClock* clock,
          LoadTransport* transport);

  // Blocks until the last call is answered. Call once.
  LoadResult Run();
  // Ends the sending within a tenth of a second. Any thread, also a signal handler.
  void Stop() { stopped_ = true; }
  // Any thread, while Run goes on.
  LoadRecorder::Live live() const { return recorder_.live(); }

 private:
  nanoseconds end() const { return options_.warm_up + options_.duration; }
  void SleepUntil(nanoseconds time);
  void RunOpen();
  void RunClosed();
  void SendNextClosed();
  void Send(const LoadCall& call, std::function<void()> then);

  const LoadOptions options_;
  CallSource* const calls_;
  LoadClock* const clock_;
  LoadTransport* const transport_;
  LoadRecorder recorder_;
  std::mutex calls_mutex_;
  std::atomic<bool> stopped_{false};
};

}  // namespace attend::client

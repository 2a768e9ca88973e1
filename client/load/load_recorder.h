// What a load run has seen so far, and what is concluded from it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client/histogram.h"
#include "client/load/call.h"

namespace attend::client {

// One stretch of the measured time; calls count where their answers came.
struct LoadWindow {
  nanoseconds begin{0};  // from the end of the warm-up
  int64_t answered = 0;
  int64_t p50 = 0, p99 = 0;  // ns
  std::string log_line;      // of an HdrHistogram interval log
};

// Of the calls that were meant to be sent after the warm-up.
struct LoadResult {
  nanoseconds offered_time{0};   // the measured time
  nanoseconds answered_time{0};  // until the last answer, if that came later
  int64_t offered = 0;
  int64_t answered = 0;
  int64_t items = 0;                           // of answered calls
  Histogram latency;                           // ns, answered calls, from the intended send time
  Histogram queue, compute;                    // ns, as the server said
  Histogram send_lag;                          // ns, how late calls were really sent
  std::map<absl::StatusCode, int64_t> errors;  // refused ones too
  std::vector<LoadWindow> windows;             // whole ones
  std::string unstable;                        // "" when the last three windows agree, else why
  nanoseconds generator_cpu{0};                // of its busiest thread, over the whole run
  int64_t sends_that_waited = 0;               // because too many calls were open
  nanoseconds run_time{0};                     // the whole run, with warm-up
  int64_t all_calls = 0;                       // warm-up too

  double offered_rate() const;
  double achieved_rate() const;
  double items_per_second() const;
  int64_t refused() const;  // RESOURCE_EXHAUSTED
  // Calls a second at which the generator's busiest thread would have nothing left.
  double generator_ceiling() const;
  // "" when the generator could have sent more, else what it was short of.
  std::string generator_limit() const;
  // "" when calls left in time, else how late and why. Their latency counts it.
  std::string sent_late() const;
};

// The last three windows agree when rate and median stay within this share of their mean.
inline constexpr double kStableWithin = 0.1;
// "" or why `windows` are not stable.
std::string WhyUnstable(const std::vector<LoadWindow>& windows);

// Thread-safe.
class LoadRecorder {
 public:
  // Times are from the run's start.
  LoadRecorder(nanoseconds warm_up, nanoseconds duration, nanoseconds window);

  void OnSent(nanoseconds intended, nanoseconds now);
  void OnDone(const LoadCall& call, const LoadReply& reply, nanoseconds now);

  // What is concluded at `now`, when every call is done; the last was sent before `sent_until`.
  LoadResult Finish(nanoseconds sent_until, nanoseconds now);

  struct Live {
    double rate = 0;  // answered a second, in the last whole window
    int64_t p99 = 0;  // ns, there
    int64_t answered = 0, failed = 0;
  };
  Live live() const;

 private:
  bool Measured(nanoseconds intended) const;
  void CloseWindowsBefore(nanoseconds time);

  const nanoseconds warm_up_, duration_, window_;
  mutable std::mutex mutex_;
  LoadResult result_;
  Histogram window_latency_;
  nanoseconds window_begin_{0};
};

}  // namespace attend::client

#include "client/load/load_recorder.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

namespace attend::client {
namespace {

double Seconds(nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

double PerSecond(double count, nanoseconds time) {
  return time > nanoseconds(0) ? count / Seconds(time) : 0;
}

// Whether all three lie within kStableWithin of their mean.
bool Agree(const double (&values)[3]) {
  const double mean = (values[0] + values[1] + values[2]) / 3;
  return std::all_of(std::begin(values), std::end(values), [mean](double value) {
    return std::fabs(value - mean) <= kStableWithin * mean;
  });
}

}  // namespace

double LoadResult::offered_rate() const { return PerSecond(offered, offered_time); }
double LoadResult::achieved_rate() const { return PerSecond(answered, answered_time); }
double LoadResult::items_per_second() const { return PerSecond(items, answered_time); }

int64_t LoadResult::refused() const {
  const auto found = errors.find(absl::StatusCode::kResourceExhausted);
  return found == errors.end() ? 0 : found->second;
}

double LoadResult::generator_ceiling() const { return PerSecond(all_calls, generator_cpu); }

std::string LoadResult::generator_limit() const {
  const bool busy = Seconds(generator_cpu) > 0.9 * Seconds(run_time);
  return busy ? "its busiest thread had no time left" : "";
}

std::string LoadResult::sent_late() const {
  constexpr nanoseconds kLate = std::chrono::milliseconds(2);
  if (send_lag.Percentile(99) <= kLate.count()) return "";
  return absl::StrFormat(
      "1 %% of the calls left more than %.1f ms late, %s", send_lag.Percentile(99) / 1e6,
      sends_that_waited > 0
          ? absl::StrFormat(
                "%d because --max-open-calls were open: the server was slower than that",
                sends_that_waited)
          : "as the generator got no processor in time");
}

std::string WhyUnstable(const std::vector<LoadWindow>& windows) {
  if (windows.size() < 3) return "fewer than three whole windows were measured";
  const LoadWindow* last = &windows[windows.size() - 3];
  const double rates[3] = {static_cast<double>(last[0].answered),
                           static_cast<double>(last[1].answered),
                           static_cast<double>(last[2].answered)};
  if (!Agree(rates)) {
    return absl::StrFormat("the last three windows answered %d, %d and %d calls", last[0].answered,
                           last[1].answered, last[2].answered);
  }
  const double medians[3] = {last[0].p50 / 1e6, last[1].p50 / 1e6, last[2].p50 / 1e6};
  if (!Agree(medians)) {
    return absl::StrFormat("the last three windows' medians are %.2f, %.2f and %.2f ms", medians[0],
                           medians[1], medians[2]);
  }
  return "";
}

LoadRecorder::LoadRecorder(nanoseconds warm_up, nanoseconds duration, nanoseconds window)
    : warm_up_(warm_up), duration_(duration), window_(window) {}

bool LoadRecorder::Measured(nanoseconds intended) const {
  return intended >= warm_up_ && intended < warm_up_ + duration_;
}

void LoadRecorder::OnSent(nanoseconds intended, nanoseconds now) {
  std::lock_guard lock(mutex_);
  ++result_.all_calls;
  if (!Measured(intended)) return;
  ++result_.offered;
  result_.send_lag.Record((now - intended).count());
}

void LoadRecorder::OnDone(const LoadCall& call, const LoadReply& reply, nanoseconds now) {
  std::lock_guard lock(mutex_);
  CloseWindowsBefore(now - warm_up_);
  if (!Measured(call.at)) return;
  if (reply.code != absl::StatusCode::kOk) {
    ++result_.errors[reply.code];
    return;
  }
  const int64_t latency = (now - call.at).count();
  ++result_.answered;
  result_.items += call.items;
  result_.latency.Record(latency);
  if (reply.timing) {
    result_.queue.Record(reply.timing->queue.count());
    result_.compute.Record(reply.timing->compute.count());
  }
  result_.answered_time = std::max(result_.answered_time, now - warm_up_);
  window_latency_.Record(latency);
}

void LoadRecorder::CloseWindowsBefore(nanoseconds time) {
  while (time >= window_begin_ + window_ && window_begin_ + window_ <= duration_) {
    result_.windows.push_back(
        {.begin = window_begin_,
         .answered = window_latency_.count(),
         .p50 = window_latency_.Percentile(50),
         .p99 = window_latency_.Percentile(99),
         .log_line = HistogramLogLine(Seconds(window_begin_), Seconds(window_), window_latency_)});
    window_latency_ = Histogram();
    window_begin_ += window_;
  }
}

LoadResult LoadRecorder::Finish(nanoseconds sent_until, nanoseconds now) {
  std::lock_guard lock(mutex_);
  CloseWindowsBefore(now - warm_up_);
  result_.offered_time = std::clamp(sent_until - warm_up_, nanoseconds(0), duration_);
  result_.answered_time = std::max(result_.answered_time, result_.offered_time);
  result_.run_time = now;
  result_.unstable = WhyUnstable(result_.windows);
  return result_;
}

LoadRecorder::Live LoadRecorder::live() const {
  std::lock_guard lock(mutex_);
  Live live{.answered = result_.answered};
  for (const auto& [code, count] : result_.errors) live.failed += count;
  if (!result_.windows.empty()) {
    const LoadWindow& last = result_.windows.back();
    live.rate = PerSecond(last.answered, window_);
    live.p99 = last.p99;
  }
  return live;
}

}  // namespace attend::client

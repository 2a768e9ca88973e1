// attend load: offers load to a server and says how it was answered.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/load_plan.h"
#include "client/command/load_report.h"
#include "client/load/knee_search.h"
#include "client/load/load_run.h"

namespace attend::client {
namespace {

using std::chrono::milliseconds;

// Keeps one line on a terminal up to date for as long as it lives.
class Progress {
 public:
  Progress(LoadRun* run, LoadClock* clock, nanoseconds whole) {
    if (!isatty(STDERR_FILENO)) return;
    thread_ = std::thread([this, run, clock, whole] {
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, milliseconds(200), [this] { return over_; })) {
        const double done = std::chrono::duration<double>(clock->now()) / whole;
        std::fprintf(stderr, "\r\x1b[K%s", ProgressText(run->live(), done).c_str());
      }
      std::fputs("\r\x1b[K", stderr);
    });
  }
  ~Progress() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

std::atomic<LoadRun*> running{nullptr};
std::atomic<bool> interrupted{false};

// The first Ctrl-C ends the sending and still reports; the second ends the process.
void OnInterrupt(int signal_number) {
  interrupted = true;
  if (LoadRun* run = running.load()) run->Stop();
  signal(signal_number, SIG_DFL);
}

LoadResult RunOnce(const LoadFlags& flags, const LoadPlan& plan, double rate,
                   LoadTransport* transport) {
  const std::unique_ptr<CallSource> calls = plan.Calls(flags, rate);
  const std::unique_ptr<LoadClock> clock = MakeRealClock();
  LoadRun run(plan.options, calls.get(), clock.get(), transport);
  running = &run;
  if (interrupted) run.Stop();
  LoadResult result;
  {
    Progress progress(&run, clock.get(), plan.options.warm_up + plan.options.duration);
    result = run.Run();
  }
  running = nullptr;
  return result;
}

bool Sustained(const LoadResult& result, milliseconds latency_bound) {
  const double failed = static_cast<double>(result.offered - result.answered);
  return result.offered > 0 && failed <= 0.001 * static_cast<double>(result.offered) &&
         result.achieved_rate() >= 0.95 * result.offered_rate() &&
         result.latency.Percentile(99) <= nanoseconds(latency_bound).count();
}

LoadResult Sweep(const LoadFlags& flags, const LoadPlan& plan, LoadTransport* transport,
                 nlohmann::ordered_json* json) {
  KneeSearch search(flags.rate > 0 ? flags.rate : 100);
  LoadResult best;
  (*json)["sweep"] = nlohmann::ordered_json::array();
  std::puts("   offered   achieved     p50 ms     p99 ms    errors");
  while (const std::optional<double> rate = search.NextRate()) {
    const LoadResult result = RunOnce(flags, plan, *rate, transport);
    if (interrupted) break;
    const bool sustained = Sustained(result, flags.latency_bound);
    std::printf("%10.1f %10.1f %10.3f %10.3f %9lld  %s\n", result.offered_rate(),
                result.achieved_rate(), result.latency.Percentile(50) / 1e6,
                result.latency.Percentile(99) / 1e6,
                static_cast<long long>(result.offered - result.answered),
                sustained ? "sustained" : "too much");
    std::fflush(stdout);
    nlohmann::ordered_json step = LoadJson(result);
    step["sustained"] = sustained;
    (*json)["sweep"].push_back(std::move(step));
    if (sustained && *rate >= search.best()) best = result;
    search.Report(sustained);
  }
  (*json)["knee_rate"] = search.best();
  std::printf("\nknee        %.1f calls/s with p99 <= %g ms\n", search.best(),
              static_cast<double>(flags.latency_bound.count()));
  return best;
}

std::string Describe(const LoadFlags& flags) {
  const std::string what =
      !flags.trace.empty()    ? absl::StrCat("recorded calls of ", flags.trace)
      : flags.concurrency > 0 ? absl::StrCat("closed loop, ", flags.concurrency, " at a time")
      : flags.sweep           ? absl::StrCat("open loop, ", flags.arrivals, ", sweep")
                    : absl::StrFormat("open loop, %s, %g calls/s", flags.arrivals, flags.rate);
  return absl::StrFormat("%s at %s: %s, lengths %s, seed %d\n", flags.model,
                         absl::StrJoin(flags.connection.targets, ","), what, flags.lengths,
                         flags.seed);
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  if (out) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": can't be written"));
}

std::string IntervalLog(const LoadResult& result) {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  std::string text =
      HistogramLogHeader(std::chrono::duration<double>(since_epoch - result.run_time).count());
  for (const LoadWindow& window : result.windows) text += window.log_line;
  return text;
}

// The code of most failures where nothing was answered.
absl::Status Outcome(const LoadResult& result) {
  if (result.answered > 0 || result.errors.empty()) return absl::OkStatus();
  const auto most =
      std::max_element(result.errors.begin(), result.errors.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return absl::Status(most->first, absl::StrCat("no call was answered; ", most->second, " got ",
                                                absl::StatusCodeToString(most->first)));
}

int Run(const LoadFlags& flags) {
  const int ways = (flags.rate > 0 || flags.sweep) + (flags.concurrency > 0) + !flags.trace.empty();
  if (ways != 1) {
    return Report(absl::InvalidArgumentError(
        "give one of --rate R, --concurrency C, --trace FILE or --sweep"));
  }
  const absl::StatusOr<LoadPlan> plan = MakeLoadPlan(flags);
  if (!plan.ok()) return Report(plan.status());
  const auto transport = MakeGrpcTransport(plan->target);
  if (!transport.ok()) return Report(transport.status());
  signal(SIGINT, OnInterrupt);
  std::fputs(Describe(flags).c_str(), stdout);
  std::fflush(stdout);

  nlohmann::ordered_json more = nlohmann::ordered_json::object();
  const LoadResult result = flags.sweep ? Sweep(flags, *plan, transport->get(), &more)
                                        : RunOnce(flags, *plan, flags.rate, transport->get());
  std::fputs(LoadText(result).c_str(), stdout);
  nlohmann::ordered_json json = LoadJson(result);
  json.update(more);
  for (const absl::Status& status :
       {WriteText(flags.json, json.dump(2) + "\n"),
        WriteText(flags.log, flags.log.empty() ? "" : IntervalLog(result)), Outcome(result)}) {
    if (!status.ok()) return Report(status);
  }
  return 0;
}

}  // namespace

void AddLoad(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<LoadFlags>();
  CLI::App* command = app.add_subcommand("load", "Offers load and says how it was answered");
  flags->AddTo(*command);
  NameEnvironmentVariables(*command);
  command->footer(
      "Latency counts from the time at which a call was meant to be sent.\n"
      "Examples:\n"
      "  attend load --rate 500 --duration 10s --lengths 8..512 --seed 1 --json result.json\n"
      "  attend load --concurrency 16 --lengths lognormal:8..2048\n"
      "  attend load --sweep --latency-bound 20ms --arrivals poisson --duration 5s");
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace attend::client

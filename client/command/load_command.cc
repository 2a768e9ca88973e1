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
#include "client/command/flags.h"
#include "client/command/load_report.h"
#include "client/load/grpc_transport.h"
#include "client/load/knee_search.h"
#include "client/load/load_run.h"
#include "client/load/workload.h"

namespace attend::client {
namespace {

using std::chrono::milliseconds;

struct LoadFlags {
  ConnectionFlags connection;
  std::string model = "demo";
  double rate = 0;
  int concurrency = 0;
  std::string arrivals = "constant";
  std::string trace;
  std::string lengths = "8..512";
  uint64_t seed = 1;
  milliseconds duration{10'000}, warm_up{1'000};
  uint32_t priority = 0;
  bool causal = false;
  int channels = 1, threads = 1, max_open_calls = 20'000;
  bool sweep = false;
  milliseconds latency_bound{50};
  std::string json, log;
};

// What the flags and the model's answer amount to.
struct Plan {
  LoadTarget target;
  std::vector<MixPart> mix;
  std::vector<LoadCall> trace;
};

absl::Status PlanCalls(const LoadFlags& flags, Plan* plan) {
  const MixPart standard{.priority = flags.priority, .deadline = flags.connection.deadline};
  if (!flags.trace.empty()) {
    absl::StatusOr<std::vector<LoadCall>> trace = ReadTrace(flags.trace, standard);
    if (!trace.ok()) return trace.status();
    plan->trace = *std::move(trace);
    return absl::OkStatus();
  }
  // What exists is a mix file, for names like "mix..txt" can be told from ranges by nothing else.
  if (access(flags.lengths.c_str(), F_OK) == 0) {
    absl::StatusOr<std::vector<MixPart>> mix = ReadMix(flags.lengths, standard);
    if (!mix.ok()) return mix.status();
    plan->mix = *std::move(mix);
    return absl::OkStatus();
  }
  const absl::StatusOr<LengthRange> lengths = ParseLengths(flags.lengths);
  if (!lengths.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(lengths.status().message(), ", or a mix file, which is not there"));
  }
  plan->mix = {standard};
  plan->mix.front().lengths = *lengths;
  return absl::OkStatus();
}

int64_t Longest(const Plan& plan) {
  int64_t longest = 1;
  for (const MixPart& part : plan.mix) longest = std::max(longest, part.lengths.highest);
  for (const LoadCall& call : plan.trace) longest = std::max(longest, call.items);
  return longest;
}

absl::StatusOr<Plan> MakePlan(const LoadFlags& flags) {
  Plan plan;
  if (absl::Status status = PlanCalls(flags, &plan); !status.ok()) return status;
  const auto client = AttendClient::Create(flags.connection.ToChannelOptions());
  if (!client.ok()) return client.status();
  const ModelName model = ParseModelName(flags.model);
  const auto info =
      (*client)->GetModel(model.name, model.version, flags.connection.ToCallOptions());
  if (!info.ok()) return info.status();
  const int64_t longest = Longest(plan);
  if (info->max_sequence_length() > 0 && longest > info->max_sequence_length()) {
    return absl::InvalidArgumentError(absl::StrCat("lengths up to ", longest, ", but model '",
                                                   info->name(), "' takes at most ",
                                                   info->max_sequence_length(), " items"));
  }
  plan.target = {.channel = flags.connection.ToChannelOptions(),
                 .channels = flags.channels,
                 .threads = flags.threads,
                 .max_open_calls = std::max(flags.max_open_calls, flags.concurrency),
                 .request = {},
                 .d_f = info->d_f(),
                 .longest = longest,
                 .seed = flags.seed};
  plan.target.request.set_model(model.name);
  plan.target.request.set_version(model.version);
  plan.target.request.set_causal(flags.causal);
  return plan;
}

std::unique_ptr<CallSource> MakeSource(const LoadFlags& flags, const Plan& plan, double rate) {
  if (!plan.trace.empty()) return ReplayCalls(plan.trace);
  return MakeCalls(plan.mix, flags.arrivals == "poisson" ? Arrivals::kPoisson : Arrivals::kConstant,
                   rate, flags.seed);
}

LoadOptions ToLoadOptions(const LoadFlags& flags, const Plan& plan) {
  const bool replay = !plan.trace.empty();
  const nanoseconds duration =
      replay ? plan.trace.back().at + nanoseconds(1) : nanoseconds(flags.duration);
  const nanoseconds window =
      std::clamp<nanoseconds>(duration / 10, milliseconds(100), milliseconds(5000));
  return {.warm_up = replay ? nanoseconds(0) : nanoseconds(flags.warm_up),
          .duration = duration,
          .window = window,
          .concurrency = flags.concurrency};
}

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

LoadResult RunOnce(const LoadFlags& flags, const Plan& plan, double rate,
                   LoadTransport* transport) {
  const std::unique_ptr<CallSource> source = MakeSource(flags, plan, rate);
  const LoadOptions options = ToLoadOptions(flags, plan);
  const std::unique_ptr<LoadClock> clock = MakeRealClock();
  LoadRun run(options, source.get(), clock.get(), transport);
  running = &run;
  if (interrupted) run.Stop();
  LoadResult result;
  {
    Progress progress(&run, clock.get(), options.warm_up + options.duration);
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

LoadResult Sweep(const LoadFlags& flags, const Plan& plan, LoadTransport* transport,
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
  const absl::StatusOr<Plan> plan = MakePlan(flags);
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

void AddWorkloadFlags(CLI::App* command, LoadFlags* flags) {
  constexpr char kGroup[] = "Load";
  const auto grouped = [&](CLI::Option* option) { return option->group(kGroup); };
  grouped(command->add_option("--model", flags->model, "the model"))
      ->type_name("NAME[@VERSION]")
      ->capture_default_str();
  CLI::Option* rate = grouped(
      command->add_option("--rate", flags->rate, "open loop: calls a second, come what may"));
  rate->type_name("R")->check(CLI::Range(0.001, 1e7));
  CLI::Option* concurrency = grouped(command->add_option("--concurrency", flags->concurrency,
                                                         "closed loop: calls open at any time"));
  concurrency->type_name("C")->check(CLI::Range(1, 100'000))->excludes(rate);
  grouped(command->add_option("--trace", flags->trace,
                              "recorded calls: lines of SECONDS N [priority=P] [deadline=D]"))
      ->type_name("FILE")
      ->excludes(rate)
      ->excludes(concurrency);
  grouped(command->add_option("--arrivals", flags->arrivals, "of --rate: constant or poisson"))
      ->check(CLI::IsMember({"constant", "poisson"}))
      ->capture_default_str();
  grouped(command->add_option("--lengths", flags->lengths,
                              "items a call: N, A..B, lognormal:A..B, or a file of lines\n"
                              "SHARE LENGTHS [priority=P] [deadline=D]"))
      ->type_name("LENGTHS")
      ->capture_default_str();
  grouped(command->add_option("--seed", flags->seed, "of lengths, times and numbers"))
      ->capture_default_str();
  grouped(AddDuration(*command, "--duration", &flags->duration, "how long is measured"));
  grouped(AddDuration(*command, "--warm-up", &flags->warm_up, "load before that"));
  grouped(command->add_option("--priority", flags->priority,
                              "0 is normal, 1 the highest, then 2, 3 ..."))
      ->capture_default_str();
  grouped(command->add_flag("--causal", flags->causal, "causal attention"));
  grouped(command->add_flag("--sweep", flags->sweep,
                            "find the highest rate with p99 within --latency-bound"));
  grouped(AddDuration(*command, "--latency-bound", &flags->latency_bound, "of --sweep"));
}

}  // namespace

void AddLoad(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<LoadFlags>();
  CLI::App* command = app.add_subcommand("load", "Offers load and says how it was answered");
  AddWorkloadFlags(command, flags.get());
  command->add_option("--json", flags->json, "write the result as JSON")->type_name("FILE");
  command->add_option("--hdr-log", flags->log, "write an HdrHistogram interval log")
      ->type_name("FILE");
  flags->connection.AddTo(*command);
  command->add_option("--channels", flags->channels, "connections to each target")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->group("Connection");
  command->add_option("--threads", flags->threads, "threads that take answers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Connection");
  command->add_option("--max-open-calls", flags->max_open_calls, "wait when so many are open")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group("Connection");
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

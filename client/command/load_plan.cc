#include "client/command/load_plan.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace attend::client {
namespace {

using std::chrono::milliseconds;

absl::Status PlanCalls(const LoadFlags& flags, LoadPlan* plan) {
  const MixPart standard{.priority = flags.priority, .deadline = flags.connection.deadline};
  if (!flags.trace.empty()) {
    absl::StatusOr<std::vector<LoadCall>> trace = ReadTrace(flags.trace, standard);
    if (!trace.ok()) return trace.status();
    plan->trace = *std::move(trace);
    return absl::OkStatus();
  }
  if (const absl::StatusOr<LengthRange> lengths = ParseLengths(flags.lengths); lengths.ok()) {
    plan->mix = {standard};
    plan->mix.front().lengths = *lengths;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<MixPart>> mix = ReadMix(flags.lengths, standard);
  if (absl::IsNotFound(mix.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("lengths '", flags.lengths,
                     "', expected N, A..B or lognormal:A..B with 1 <= A <= B, or a mix file"));
  }
  if (!mix.ok()) return mix.status();
  plan->mix = *std::move(mix);
  return absl::OkStatus();
}

int64_t Longest(const LoadPlan& plan) {
  int64_t longest = 1;
  for (const MixPart& part : plan.mix) longest = std::max(longest, part.lengths.highest);
  for (const LoadCall& call : plan.trace) longest = std::max(longest, call.items);
  return longest;
}

absl::Status CheckLongest(int64_t longest, const v1::ModelInfo& model, const LoadFlags& flags) {
  if (model.max_sequence_length() > 0 && longest > model.max_sequence_length()) {
    return absl::InvalidArgumentError(absl::StrCat("lengths up to ", longest, ", but model '",
                                                   model.name(), "' takes at most ",
                                                   model.max_sequence_length(), " items"));
  }
  const int64_t most = flags.connection.max_message_bytes;
  if (model.d_f() <= 0 || longest > most / model.d_f() / int64_t{sizeof(float)}) {
    return absl::InvalidArgumentError(absl::StrCat("lengths up to ", longest,
                                                   " of d_f = ", model.d_f(),
                                                   " are above --max-message-bytes ", most));
  }
  return absl::OkStatus();
}

LoadOptions ToLoadOptions(const LoadFlags& flags, const LoadPlan& plan) {
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

void AddConnectionFlags(CLI::App* command, LoadFlags* flags) {
  const auto add_count = [&](const char* name, int* value, int most, const char* description) {
    command->add_option(name, *value, description)
        ->check(CLI::Range(1, most))
        ->capture_default_str()
        ->group("Connection");
  };
  flags->connection.AddTo(*command);
  add_count("--channels", &flags->channels, 256, "connections to each target");
  add_count("--threads", &flags->threads, 64, "threads that take answers");
  add_count("--max-open-calls", &flags->max_open_calls, 1'000'000, "wait when so many are open");
}

}  // namespace

void LoadFlags::AddTo(CLI::App& app) {
  AddWorkloadFlags(&app, this);
  app.add_option("--json", json, "write the result as JSON")->type_name("FILE");
  app.add_option("--hdr-log", log, "write an HdrHistogram interval log")->type_name("FILE");
  AddConnectionFlags(&app, this);
}

absl::StatusOr<LoadPlan> MakeLoadPlan(const LoadFlags& flags) {
  LoadPlan plan;
  if (absl::Status status = PlanCalls(flags, &plan); !status.ok()) return status;
  const auto client = flags.connection.Connect();
  if (!client.ok()) return client.status();
  const ModelName model = ParseModelName(flags.model);
  const auto info =
      (*client)->GetModel(model.name, model.version, flags.connection.ToCallOptions());
  if (!info.ok()) return info.status();
  if (absl::Status status = CheckLongest(Longest(plan), *info, flags); !status.ok()) return status;
  plan.options = ToLoadOptions(flags, plan);
  plan.target = {.channel = flags.connection.ToChannelOptions(),
                 .protocol = flags.connection.protocol,
                 .channels = flags.channels,
                 .threads = flags.threads,
                 .max_open_calls = std::max(flags.max_open_calls, flags.concurrency),
                 .request = {},
                 .d_f = info->d_f(),
                 .longest = Longest(plan),
                 .seed = flags.seed};
  plan.target.request.set_model(model.name);
  plan.target.request.set_version(model.version);
  plan.target.request.set_causal(flags.causal);
  return plan;
}

std::unique_ptr<CallSource> LoadPlan::Calls(const LoadFlags& flags, double rate) const {
  if (!trace.empty()) return ReplayCalls(trace);
  return MakeCalls(mix, flags.arrivals == "poisson" ? Arrivals::kPoisson : Arrivals::kConstant,
                   rate, flags.seed);
}

}  // namespace attend::client

#include "server/flags.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/time/time.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "server/version.h"

namespace attend {
namespace {

constexpr char kDescription[] = "Serves self-attention over gRPC on CPUs.";
constexpr char kExamples[] = R"(
Examples:
  attend-server                                          serve the demo model on localhost:8001
  attend-server --model-repository models                serve models/NAME/VERSION/
  attend-server --grpc-address 0.0.0.0:8001 --threads 4  serve other machines by four threads
  ATTEND_LOG_FORMAT=json attend-server                   every flag is also a variable

Durations are like 200us, 5ms, 1.5s; sizes like 65536, 256MiB, 1GiB.)";

// "--max-queue-delay" is also ATTEND_MAX_QUEUE_DELAY.
std::string VariableOf(const std::string& flag) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"--", "ATTEND_"}, {"-", "_"}}));
}

template <typename Value>
CLI::Option* AddFlag(CLI::App& app, const std::string& name, Value& value,
                     const std::string& help) {
  return app.add_option(name, value, help)->capture_default_str()->envname(VariableOf(name));
}

// What is wrong with it, or nothing.
std::string CheckDuration(const std::string& text) {
  absl::Duration parsed;
  double number = 0;
  if (absl::ParseDuration(text, &parsed) && parsed >= absl::ZeroDuration() &&
      parsed <= absl::Hours(24)) {
    return "";
  }
  if (absl::SimpleAtod(text, &number)) {
    return absl::StrCat("\"", text, "\" lacks its unit; expected ", text, "us, ", text, "ms or ",
                        text, "s");
  }
  return absl::StrCat("\"", text,
                      "\" is no duration of at most 24h; expected one like 200us, 5ms, ", "1.5s");
}

template <typename Duration>
void AddDuration(CLI::App& app, const std::string& name, Duration& value, const std::string& help) {
  const auto parse = [&value](const CLI::results_t& results) {
    absl::Duration parsed;
    const bool valid = absl::ParseDuration(results.back(), &parsed);
    value = Duration(parsed / absl::FromChrono(Duration(1)));
    return valid;
  };
  app.add_option(name, parse, help)
      ->check(CheckDuration)
      ->default_str(absl::FormatDuration(absl::FromChrono(value)))
      ->type_name("DURATION")
      ->envname(VariableOf(name));
}

CLI::Option* AddSize(CLI::App& app, const std::string& name, int64_t& value,
                     const std::string& help) {
  return AddFlag(app, name, value, help)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50))
      ->default_str(value == 0 ? "0" : absl::StrCat(value >> 20, "MiB"))
      ->type_name("SIZE");
}

void AddFlags(CLI::App& app, Flags& flags) {
  AddFlag(app, "--model-repository", flags.model_repository,
          "directory of NAME/VERSION/ models; without it the embedded model \"demo\"")
      ->type_name("DIR");
  app.add_flag("--allow-partial", flags.allow_partial,
               "serve the other models when some are broken")
      ->envname("ATTEND_ALLOW_PARTIAL");
  AddDuration(app, "--model-poll", flags.model_poll,
              "how often to look for new, changed and removed models; 0s: never");
  app.add_flag("--allow-model-control", flags.allow_model_control,
               "let callers load and unload models of the repository")
      ->envname("ATTEND_ALLOW_MODEL_CONTROL");
  AddFlag(app, "--grpc-address", flags.grpc_address, "where gRPC listens; port 0 takes a free one")
      ->type_name("HOST:PORT");
  AddFlag(app, "--metrics-address", flags.metrics_address, "where HTTP /metrics listens")
      ->type_name("HOST:PORT");
  AddFlag(app, "--max-connections", flags.max_connections,
          "connections to gRPC; more are closed at once")
      ->check(CLI::Range(1, 1 << 20));
  AddFlag(app, "--threads", flags.threads, "threads that compute; 0: as many as there are CPUs")
      ->check(CLI::Range(0, 1024));
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 40);
  AddFlag(app, "--max-batch-items", flags.max_batch_items, "items of a batch, all its sequences")
      ->check(count);
  AddFlag(app, "--max-batch-requests", flags.max_batch_requests, "sequences of a batch")
      ->check(count);
  AddDuration(app, "--max-batch-cost", flags.max_batch_cost,
              "one worker's time for a batch, as the cost model says");
  AddDuration(app, "--max-queue-delay", flags.max_queue_delay,
              "how long a request may wait for company");
  AddFlag(app, "--max-queued-requests", flags.max_queued_requests,
          "requests that may wait; more are refused")
      ->check(count);
  AddDuration(
      app, "--max-queued-cost", flags.max_queued_cost,
      "how long an accepted request waits at most, in workers' time; 0s: 1s of all workers");
  AddSize(app, "--max-queued-bytes", flags.max_queued_bytes,
          "bytes of requests and answers held; more are refused; 0: a quarter of the memory");
  AddSize(app, "--max-message-bytes", flags.max_message_bytes, "bytes of a request, of an answer")
      ->check(CLI::Range(int64_t{1} << 10, int64_t{1} << 50));
  AddSize(
      app, "--max-incoming-bytes", flags.max_incoming_bytes,
      "bytes of requests on their way in, all connections; beyond it callers are slowed down, then "
      "ended; 0: a quarter of the memory");
  AddDuration(app, "--ageing", flags.ageing,
              "how long a priority may be kept waiting by the one above it");
  AddDuration(app, "--drain-delay", flags.drain_delay,
              "after SIGTERM, how long requests are still accepted");
  AddDuration(app, "--grace-period", flags.grace_period,
              "after that, how long accepted requests may take");
  AddDuration(app, "--stall-timeout", flags.stall_timeout,
              "without progress of runnable work for so long, health is NOT_SERVING; 0s: never");
  AddFlag(app, "--tls-certificate", flags.tls_certificate,
          "PEM certificate chain; with it gRPC speaks TLS alone; reloaded when it changes")
      ->type_name("FILE");
  AddFlag(app, "--tls-key", flags.tls_key, "PEM key of the certificate")->type_name("FILE");
  AddFlag(app, "--tls-client-ca", flags.tls_client_ca,
          "PEM roots; with them callers must show a certificate of theirs")
      ->type_name("FILE");
  AddFlag(app, "--check-model", flags.check_model,
          "say what a folder with a checkpoint holds and how to serve a layer of it, then exit")
      ->type_name("DIR");
  AddFlag(app, "--tensor-prefix", flags.tensor_prefix, "of --check-model: the layer asked for")
      ->type_name("PREFIX");
  AddFlag(app, "--log-level", flags.log_level, "how much to log")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  AddFlag(app, "--log-format", flags.log_format, "how to log")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app(kDescription, "attend-server");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer(kExamples);
  app.set_version_flag("--version", VersionText);
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  return flags;
}

}  // namespace attend

// attend-server: starts, serves, drains.
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint_report.h"
#include "core/onednn_runtime.h"
#include "server/batching/batcher.h"
#include "server/drain.h"
#include "server/flags.h"
#include "server/idle_trim.h"
#include "server/models.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/metrics_server.h"
#include "server/reports.h"
#include "server/repository.h"
#include "server/rpc/grpc_server.h"
#include "server/signals.h"
#include "server/version.h"

namespace attend {
namespace {

BatcherOptions BatcherOptionsOf(const Flags& flags) {
  BatcherOptions options;
  options.threads = flags.threads;
  options.max_batch_items = flags.max_batch_items;
  options.max_batch_requests = flags.max_batch_requests;
  options.max_batch_cost = flags.max_batch_cost;
  options.max_queue_delay = flags.max_queue_delay;
  options.max_queued_requests = flags.max_queued_requests;
  options.max_queued_cost = flags.max_queued_cost;
  options.ageing = flags.ageing;
  options.max_queued_bytes = flags.max_queued_bytes;
  options.stall_timeout = flags.stall_timeout;
  return options;
}

int Fail(const absl::Status& status) {
  Log(LogLevel::kError, "failed", {{"reason", std::string(status.message())}});
  return EXIT_FAILURE;
}

std::string ModelNames(const ModelRegistry& registry) {
  std::string names;
  for (const auto& model : registry.List()) {
    absl::StrAppend(&names, names.empty() ? "" : ",", model->name, "@", model->version);
  }
  return names;
}

Metrics::Sampled SampleOf(const Batcher& batcher, const GrpcServer& server) {
  const Executor::Load load = batcher.load();
  const PrimitiveCacheStats cache = GetPrimitiveCacheStats();
  return {batcher.threads(),
          load.busy_workers,
          load.open_jobs,
          load.flop_done,
          batcher.queue(),
          batcher.queue_limits(),
          {cache.size, cache.capacity, cache.misses},
          server.refused_connections()};
}

absl::Status LoadAll(const Flags& flags, ModelRegistry* registry, Metrics* metrics) {
  std::vector<absl::Status> broken;
  const absl::Status loaded =
      LoadModels({flags.model_repository, flags.allow_partial}, registry, metrics, &broken);
  for (const absl::Status& status : broken) {
    Log(LogLevel::kError, "broken", {{"reason", std::string(status.message())}});
  }
  return loaded;
}

void LogStart(const std::string& grpc_address, const std::string& metrics_address,
              const ModelRegistry& registry, const Batcher& batcher) {
  Log(LogLevel::kInfo, "listening",
      {{"grpc", grpc_address},
       {"metrics", metrics_address},
       {"models", ModelNames(registry)},
       {"threads", int64_t{batcher.threads()}},
       {"max_queued_bytes", batcher.queue_limits().bytes},
       {"isa", OneDnnIsa()},
       {"onednn", OneDnnVersion()},
       {"version", VersionNumber()}});
}

// Exit codes as of the `attend` command, which runs this for `attend models check`.
int CheckModel(const Flags& flags) {
  const auto report = DescribeCheckpoint(flags.check_model, flags.tensor_prefix);
  if (report.ok()) {
    std::fputs(report->c_str(), stdout);
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "%s\n", std::string(report.status().message()).c_str());
  return absl::IsInvalidArgument(report.status()) || absl::IsNotFound(report.status()) ? 2 : 4;
}

// What a sequence of N items is expected to take one worker: c + a*N + b*N^2.
void LogCosts(const ModelRegistry& registry) {
  for (const auto& model : registry.List()) {
    const CostCurve curve = model->cost->curve(*model->model);
    Log(LogLevel::kInfo, "calibrated",
        {{"model", absl::StrCat(model->name, "@", model->version)},
         {"c_us", curve.c * 1e6},
         {"a_us", curve.a * 1e6},
         {"b_us", curve.b * 1e6}});
  }
}

int Serve(const Flags& flags) {
  if (auto status = ConfigureLog({flags.log_level, flags.log_format}); !status.ok()) {
    return Fail(status);
  }
  RouteGrpcLog();
  Drain drain;
  ModelRegistry registry;
  Metrics metrics({VersionNumber(), CommitId(), OneDnnIsa(), OneDnnVersion()});
  if (auto status = LoadAll(flags, &registry, &metrics); !status.ok()) return Fail(status);

  ModelStatistics statistics;
  Reports reports(&metrics, &statistics);
  Batcher batcher(BatcherOptionsOf(flags), &reports);
  auto metrics_server = MetricsServer::Start(flags.metrics_address, metrics);
  if (!metrics_server.ok()) return Fail(metrics_server.status());
  std::optional<Repository> repository;
  if (!flags.model_repository.empty()) {
    repository.emplace(flags.model_repository, flags.model_poll, &registry, &metrics);
  }
  const bool control = repository && flags.allow_model_control;
  auto server = GrpcServer::Start(
      {flags.grpc_address,
       {flags.tls_certificate, flags.tls_key, flags.tls_client_ca},
       flags.max_connections,
       flags.max_incoming_bytes},
      {&registry, &batcher, std::min(flags.max_message_bytes, batcher.queue_limits().bytes),
       &statistics, control ? &*repository : nullptr, VersionNumber(), flags.max_queued_requests},
      &reports);
  if (!server.ok()) return Fail(server.status());
  metrics.SampleWith([&] { return SampleOf(batcher, **server); });
  reports.OnStallDo([&](bool stalled) { (*server)->SetStalled(stalled); });
  (*server)->SetServing(true);
  LogCosts(registry);
  LogStart((*server)->address(), (*metrics_server)->address(), registry, batcher);
  const IdleTrim trim(
      [&batcher] { return batcher.load().open_jobs == 0 && batcher.queue().requests == 0; });
  const bool clean = drain.Run({flags.drain_delay, flags.grace_period}, batcher, **server);
  metrics.SampleWith(nullptr);
  return clean ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto flags = attend::ParseFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  return flags->check_model.empty() ? attend::Serve(*flags) : attend::CheckModel(*flags);
}

#include "server/reports.h"

#include <absl/strings/str_cat.h>
#include <grpc/support/log.h>

#include <string>

#include "server/batching/refusal.h"
#include "server/observe/log.h"
#include "server/observe/rate_limit.h"

namespace attend {
namespace {

// At info what an operator looks for: what was slow, what was refused; but never so much of it that
// the log becomes the load.
constexpr std::chrono::seconds kSlow{1};
constexpr int kLinesPerSecond = 10;

LogLevel LevelOf(const ExchangeFacts& facts, const absl::Status& status) {
  static RateLimit limit(kLinesPerSecond);
  if (status.code() == absl::StatusCode::kInternal) return LogLevel::kError;
  if ((!status.ok() || facts.duration > kSlow) && limit.Allow(Clock::now())) return LogLevel::kInfo;
  return LogLevel::kDebug;
}

}  // namespace

void Reports::OnBatchStarted(const BatchFacts& facts) {
  metrics_->OnBatchStarted(facts);
  statistics_->OnBatchStarted(facts);
}

void Reports::OnBatchFinished(const BatchCostFacts& facts) { metrics_->OnBatchFinished(facts); }

void Reports::OnRequestComputed(const RequestFacts& facts) {
  metrics_->OnRequestComputed(facts);
  statistics_->OnRequestComputed(facts);
}

void Reports::OnStalled(bool stalled) {
  metrics_->OnStalled(stalled);
  Log(stalled ? LogLevel::kError : LogLevel::kWarning, stalled ? "stalled" : "recovered", {});
  if (on_stall_) on_stall_(stalled);
}

void Reports::OnExchange(const ExchangeFacts& facts, const absl::Status& status) {
  statistics_->OnExchange(facts, status);
  const std::string code = absl::StatusCodeToString(status.code());
  metrics_->OnExchange({facts.method, facts.model, code, ReasonOf(status), facts.duration});
  const LogLevel level = LevelOf(facts, status);
  if (!LogEnabled(level)) return;
  Log(level, "request",
      {{"id", facts.request_id},
       {"method", std::string(facts.method)},
       {"model", facts.model},
       {"items", facts.items},
       {"code", code},
       {"ms", std::chrono::duration<double, std::milli>(facts.duration).count()},
       {"reason", std::string(status.message())}});
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    const LogLevel level =
        args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
    Log(level, "grpc",
        {{"message", std::string(args->message)},
         {"at", absl::StrCat(args->file, ":", args->line)}});
  });
}

}  // namespace attend

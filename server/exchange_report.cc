#include "server/exchange_report.h"

#include <absl/strings/str_cat.h>
#include <grpc/support/log.h>

#include <string>

#include "server/batching/refusal.h"
#include "server/observe/log.h"

namespace attend {
namespace {

LogLevel LevelOf(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInternal ? LogLevel::kError : LogLevel::kDebug;
}

}  // namespace

void ExchangeReport::OnExchange(const ExchangeFacts& facts, const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  metrics_->OnExchange({facts.method, facts.model, code, ReasonOf(status), facts.duration});
  const LogLevel level = LevelOf(status);
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

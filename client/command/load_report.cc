#include "client/command/load_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

namespace attend::client {
namespace {

using nlohmann::ordered_json;

struct NamedPercentile {
  const char* key;
  const char* label;
  double percentile;
};
constexpr NamedPercentile kPercentiles[] = {{"p50", "p50", 50},
                                            {"p90", "p90", 90},
                                            {"p99", "p99", 99},
                                            {"p99_9", "p99.9", 99.9},
                                            {"p99_99", "p99.99", 99.99}};

ordered_json PercentilesJson(const Histogram& values) {
  ordered_json json;
  for (const NamedPercentile& p : kPercentiles) {
    const std::optional<double> ms = PercentileMs(values, p.percentile);
    json[p.key] = ms ? ordered_json(*ms) : ordered_json(nullptr);
  }
  json["max"] = values.count() > 0 ? ordered_json(values.max() / 1e6) : ordered_json(nullptr);
  return json;
}

std::string PercentilesText(const Histogram& values) {
  std::string text;
  for (const NamedPercentile& p : kPercentiles) {
    const std::optional<double> ms = PercentileMs(values, p.percentile);
    absl::StrAppend(&text, p.label, " ", ms ? absl::StrFormat("%.3f", *ms) : "-", "  ");
  }
  return absl::StrCat(text, "max ",
                      values.count() > 0 ? absl::StrFormat("%.3f", values.max() / 1e6) : "-");
}

std::string ErrorsText(const LoadResult& result) {
  std::string text;
  for (const auto& [code, count] : result.errors) {
    absl::StrAppend(&text, text.empty() ? "" : "  ", absl::StatusCodeToString(code), " ", count);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::optional<double> PercentileMs(const Histogram& values, double percentile) {
  const double beyond = static_cast<double>(values.count()) * (100 - percentile) / 100;
  if (beyond < 10 - 1e-6) return std::nullopt;
  return values.Percentile(percentile) / 1e6;
}

ordered_json LoadJson(const LoadResult& result) {
  ordered_json errors = ordered_json::object();
  for (const auto& [code, count] : result.errors) errors[absl::StatusCodeToString(code)] = count;
  const std::string limit = result.generator_limit();
  return {{"offered_rate", result.offered_rate()},
          {"achieved_rate", result.achieved_rate()},
          {"items_per_s", result.items_per_second()},
          {"latency_ms", PercentilesJson(result.latency)},
          {"refused", result.refused()},
          {"errors", errors},
          {"offered", result.offered},
          {"answered", result.answered},
          {"queue_ms", PercentilesJson(result.queue)},
          {"compute_ms", PercentilesJson(result.compute)},
          {"stable", result.unstable.empty()},
          {"unstable_because", result.unstable},
          {"generator",
           {{"ceiling_rate", result.generator_ceiling()},
            {"send_lag_ms", PercentilesJson(result.send_lag)},
            {"was_the_limit", !limit.empty()},
            {"limited_by", limit},
            {"sent_late", result.sent_late()}}}};
}

std::string LoadText(const LoadResult& result) {
  const std::string limit = result.generator_limit(), late = result.sent_late();
  return absl::StrCat(
      absl::StrFormat("offered     %.1f calls/s  (%d calls)\n", result.offered_rate(),
                      result.offered),
      absl::StrFormat("achieved    %.1f calls/s  %.0f items/s  (%d answered)\n",
                      result.achieved_rate(), result.items_per_second(), result.answered),
      "latency ms  ", PercentilesText(result.latency), "\n",  //
      "queue ms    ", PercentilesText(result.queue), "\n",    //
      "compute ms  ", PercentilesText(result.compute), "\n",  //
      "errors      ", ErrorsText(result), "\n",               //
      "windows     ", result.unstable.empty() ? "stable" : "NOT STABLE: " + result.unstable, "\n",
      absl::StrFormat("generator   could send %.0f calls/s", result.generator_ceiling()),
      limit.empty() ? "" : "; IT WAS THE LIMIT, not the server: " + limit,
      late.empty() ? "" : "; SENT LATE: " + late, "\n");
}

std::string ProgressText(const LoadRecorder::Live& live, double done) {
  constexpr int kCells = 20;
  const int full = static_cast<int>(std::clamp(done, 0.0, 1.0) * kCells);
  return absl::StrFormat("[%s%s] %3.0f %%  %8.0f calls/s  p99 %.2f ms  answered %d  failed %d",
                         std::string(full, '#'), std::string(kCells - full, '-'),
                         100 * std::clamp(done, 0.0, 1.0), live.rate, live.p99 / 1e6, live.answered,
                         live.failed);
}

}  // namespace attend::client

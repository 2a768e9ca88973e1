// What a load run found, for people and for machines.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "client/load/load_recorder.h"

namespace attend::client {

// A percentile in milliseconds; nothing when fewer than ten values lie beyond it.
std::optional<double> PercentileMs(const Histogram& values, double percentile);

// Keys offered_rate, achieved_rate, items_per_s, latency_ms {p50, p90, p99, p99_9, p99_99, max},
// refused, errors {CODE: count} and more (docs/load.md); null where there are too few samples.
nlohmann::ordered_json LoadJson(const LoadResult& result);
// Lines of "what  numbers".
std::string LoadText(const LoadResult& result);

// "[#####-----]  50 %   1990 calls/s   p99 4.20 ms   failed 0", of a run `done` (0..1) over.
std::string ProgressText(const LoadRecorder::Live& live, double done);

}  // namespace attend::client

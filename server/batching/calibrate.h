// A model's first forwards: they measure it, and spare the first caller what they set up.
#pragma once

#include <absl/status/statusor.h>

#include <functional>

#include "core/model.h"
#include "server/batching/cost_model.h"
#include "server/batching/pending_request.h"

namespace attend {

// Computes sequences of a few lengths, up to 1,024 items and for a fraction of a second, on one
// worker of its own, and fits their times. The status of the first that fails.
absl::StatusOr<CostCurve> Calibrate(const Model& model,
                                    const std::function<Clock::time_point()>& now = Clock::now);

}  // namespace attend

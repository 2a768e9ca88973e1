// One call of a load run: what is sent, when it was meant to be, what came of it.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace attend::client {

using std::chrono::nanoseconds;

struct LoadCall {
  nanoseconds at{0};  // when it is meant to be sent, from the run's start
  int64_t items = 0;  // N
  uint32_t priority = 0;
  nanoseconds deadline{0};  // from `at`
};

struct LoadReply {
  absl::StatusCode code = absl::StatusCode::kOk;
  // As the server said, of answered calls; not by the Open Inference Protocol.
  struct Timing {
    nanoseconds queue{0};
    nanoseconds compute{0};
  };
  std::optional<Timing> timing = {};
};

}  // namespace attend::client

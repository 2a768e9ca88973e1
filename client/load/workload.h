// What a load run sends and when: lengths, priorities and deadlines out of a distribution or a
// recording, at constant, Poisson or recorded times. The same seed gives the same calls everywhere.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/load/call.h"

namespace attend::client {

// Lengths between lowest and highest, both included.
struct LengthRange {
  int64_t lowest = 1, highest = 1;
  // Log-normal, two standard deviations below and above the median at the two ends; what falls
  // outside is drawn again. Else uniform.
  bool lognormal = false;
};
// "64", "8..512" or "lognormal:8..512". INVALID_ARGUMENT.
absl::StatusOr<LengthRange> ParseLengths(const std::string& text);

// One kind of call among several.
struct MixPart {
  double share = 1;  // of all calls, relative to the other parts
  LengthRange lengths = {};
  uint32_t priority = 0;
  nanoseconds deadline{0};
};

// Lines of "SHARE LENGTHS [priority=P] [deadline=D]"; empty lines and what follows a # are passed
// over. `standard` gives what a line leaves out. INVALID_ARGUMENT names the line; NOT_FOUND.
absl::StatusOr<std::vector<MixPart>> ReadMix(const std::string& path, const MixPart& standard);
// Lines of "SECONDS N [priority=P] [deadline=D]", seconds from the start, never decreasing.
absl::StatusOr<std::vector<LoadCall>> ReadTrace(const std::string& path, const MixPart& standard);

// Gives the calls in the order of their times. Thread-compatible.
class CallSource {
 public:
  virtual ~CallSource() = default;
  // Nothing when there are no more.
  virtual std::optional<LoadCall> Next() = 0;
};

enum class Arrivals { kConstant, kPoisson };

// Endless. `rate` calls a second; with 0 every call's time is 0, for closed loops.
std::unique_ptr<CallSource> MakeCalls(std::vector<MixPart> mix, Arrivals arrivals, double rate,
                                      uint64_t seed);
std::unique_ptr<CallSource> ReplayCalls(std::vector<LoadCall> trace);

}  // namespace attend::client

#include "client/load/workload.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <absl/time/time.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <utility>

namespace attend::client {
namespace {

constexpr int64_t kLongest = int64_t{1} << 30;

bool ParseLength(absl::string_view text, int64_t* length) {
  return absl::SimpleAtoi(text, length) && *length >= 1 && *length <= kLongest;
}

// "priority=P" or "deadline=D"; an empty string is success.
std::string ParseOption(const std::string& word, uint32_t* priority, nanoseconds* deadline) {
  absl::string_view value = word;
  absl::Duration duration;
  if (absl::ConsumePrefix(&value, "priority=")) {
    if (absl::SimpleAtoi(value, priority)) return "";
  } else if (absl::ConsumePrefix(&value, "deadline=")) {
    if (absl::ParseDuration(value, &duration) && duration > absl::ZeroDuration()) {
      *deadline = absl::ToChronoNanoseconds(duration);
      return "";
    }
  }
  return absl::StrCat("'", word, "', expected priority=P or deadline=D such as 50ms");
}

using ParseWords = std::function<std::string(const std::vector<std::string>&)>;

// Calls `parse` with the words of each line that has some; it returns what is wrong or "".
absl::Status ForEachLine(const std::string& path, const ParseWords& parse) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": can't be opened"));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r,"), absl::SkipEmpty());
    if (words.empty()) continue;
    const std::string wrong = words.size() < 2 ? "one word, expected two at least" : parse(words);
    if (!wrong.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", wrong));
    }
  }
  return absl::OkStatus();
}

// The standard's distributions differ between libraries; these do not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double Exponential() { return -std::log1p(-Uniform()); }
  // Box and Muller 1958.
  double Normal() {
    const double radius = std::sqrt(2 * Exponential());
    return radius * std::cos(2 * M_PI * Uniform());
  }
  int64_t Length(const LengthRange& range) {
    if (!range.lognormal) {
      return range.lowest + static_cast<int64_t>(
                                Uniform() * static_cast<double>(range.highest - range.lowest + 1));
    }
    const double low = std::log(range.lowest), high = std::log(range.highest);
    while (true) {
      const double drawn = (low + high) / 2 + (high - low) / 4 * Normal();
      if (drawn >= low && drawn <= high) {
        return std::clamp<int64_t>(std::llround(std::exp(drawn)), range.lowest, range.highest);
      }
    }
  }

 private:
  std::mt19937_64 engine_;
};

class GeneratedCalls : public CallSource {
 public:
  GeneratedCalls(std::vector<MixPart> mix, Arrivals arrivals, double rate, uint64_t seed)
      : mix_(std::move(mix)), arrivals_(arrivals), rate_(rate), times_(seed), kinds_(~seed) {
    for (const MixPart& part : mix_) total_share_ += part.share;
  }

  std::optional<LoadCall> Next() override {
    const MixPart& part = Draw();
    LoadCall call{.at = NextTime(),
                  .items = kinds_.Length(part.lengths),
                  .priority = part.priority,
                  .deadline = part.deadline};
    ++sent_;
    return call;
  }

 private:
  const MixPart& Draw() {
    double left = kinds_.Uniform() * total_share_;
    for (const MixPart& part : mix_) {
      if (left < part.share) return part;
      left -= part.share;
    }
    return mix_.back();
  }
  nanoseconds NextTime() {
    if (rate_ <= 0) return nanoseconds(0);
    // Constant times are multiples, not sums, so that rounding does not add up.
    if (arrivals_ == Arrivals::kConstant) return nanoseconds(std::llround(1e9 * sent_ / rate_));
    poisson_seconds_ += times_.Exponential() / rate_;
    return nanoseconds(std::llround(1e9 * poisson_seconds_));
  }

  const std::vector<MixPart> mix_;
  const Arrivals arrivals_;
  const double rate_;
  Random times_, kinds_;  // apart, so that the lengths don't depend on the arrivals
  double total_share_ = 0;
  double poisson_seconds_ = 0;
  int64_t sent_ = 0;
};

class ReplayedCalls : public CallSource {
 public:
  explicit ReplayedCalls(std::vector<LoadCall> trace) : trace_(std::move(trace)) {}
  std::optional<LoadCall> Next() override {
    if (next_ == trace_.size()) return std::nullopt;
    return trace_[next_++];
  }

 private:
  const std::vector<LoadCall> trace_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<LengthRange> ParseLengths(const std::string& text) {
  LengthRange range;
  absl::string_view rest = text;
  range.lognormal = absl::ConsumePrefix(&rest, "lognormal:");
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(rest, absl::MaxSplits("..", 1));
  const bool two = absl::StrContains(rest, "..");
  if (ParseLength(ends.first, &range.lowest) &&
      ParseLength(two ? ends.second : ends.first, &range.highest) &&
      range.lowest <= range.highest) {
    return range;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("lengths '", text, "', expected N, A..B or lognormal:A..B with 1 <= A <= B"));
}

absl::StatusOr<std::vector<MixPart>> ReadMix(const std::string& path, const MixPart& standard) {
  std::vector<MixPart> mix;
  absl::Status status = ForEachLine(path, [&](const std::vector<std::string>& words) {
    MixPart part = standard;
    if (!absl::SimpleAtod(words[0], &part.share) || !(part.share > 0 && part.share < 1e9)) {
      return absl::StrCat("share '", words[0], "', expected a number above 0");
    }
    const absl::StatusOr<LengthRange> lengths = ParseLengths(words[1]);
    if (!lengths.ok()) return std::string(lengths.status().message());
    part.lengths = *lengths;
    std::string wrong;
    for (size_t i = 2; i < words.size() && wrong.empty(); ++i) {
      wrong = ParseOption(words[i], &part.priority, &part.deadline);
    }
    mix.push_back(part);
    return wrong;
  });
  if (!status.ok()) return status;
  if (mix.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no line in it"));
  return mix;
}

absl::StatusOr<std::vector<LoadCall>> ReadTrace(const std::string& path, const MixPart& standard) {
  std::vector<LoadCall> trace;
  absl::Status status = ForEachLine(path, [&](const std::vector<std::string>& words) {
    LoadCall call{.priority = standard.priority, .deadline = standard.deadline};
    double seconds;
    if (!absl::SimpleAtod(words[0], &seconds) || !(seconds >= 0 && seconds < 1e6)) {
      return absl::StrCat("time '", words[0], "', expected seconds from the start");
    }
    call.at = nanoseconds(std::llround(seconds * 1e9));
    if (!trace.empty() && call.at < trace.back().at) {
      return absl::StrCat("time ", words[0], " is before the one above it");
    }
    if (!ParseLength(words[1], &call.items)) {
      return absl::StrCat("length '", words[1], "', expected a whole number, 1 or more");
    }
    std::string wrong;
    for (size_t i = 2; i < words.size() && wrong.empty(); ++i) {
      wrong = ParseOption(words[i], &call.priority, &call.deadline);
    }
    trace.push_back(call);
    return wrong;
  });
  if (!status.ok()) return status;
  if (trace.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no line in it"));
  return trace;
}

std::unique_ptr<CallSource> MakeCalls(std::vector<MixPart> mix, Arrivals arrivals, double rate,
                                      uint64_t seed) {
  return std::make_unique<GeneratedCalls>(std::move(mix), arrivals, rate, seed);
}

std::unique_ptr<CallSource> ReplayCalls(std::vector<LoadCall> trace) {
  return std::make_unique<ReplayedCalls>(std::move(trace));
}

}  // namespace attend::client

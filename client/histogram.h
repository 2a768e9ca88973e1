// Counts of values over many orders of magnitude at a fixed relative precision, in HdrHistogram's
// bucket layout (G. Tene, https://hdrhistogram.github.io), so that its tools can read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend::client {

// Values 0 .. 2^42-1 (73 minutes in nanoseconds; larger ones count as that), three significant
// digits: a value is known to 1/1024 of itself or better. Memory grows with the largest value, to
// 270 KB. Thread-compatible.
class Histogram {
 public:
  static constexpr int64_t kHighestValue = (int64_t{1} << 42) - 1;

  void Record(int64_t value);
  void Add(const Histogram& other);

  int64_t count() const { return count_; }
  int64_t max() const { return max_; }  // exact; 0 when empty
  // The smallest value that at least `percentile` per cent of the values do not exceed, to the
  // histogram's precision, never below it; 0 when empty. 0 < percentile <= 100.
  int64_t Percentile(double percentile) const;

  // The V2 encoding, compressed and in base64 ("HISTFAAA..."), as interval logs hold it.
  std::string Encoded() const;

 private:
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  int64_t max_ = 0;
};

// One interval log, "Histogram log format version 1.3".
std::string HistogramLogHeader(double start_seconds_since_epoch);
// Values are nanoseconds; the log's own maximum is in milliseconds. Times in seconds from the
// start.
std::string HistogramLogLine(double begin_seconds, double length_seconds, const Histogram& values);

}  // namespace attend::client

#include "client/histogram.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace attend::client {
namespace {

// Three digits need steps of 1/2000, so 2^11 sub-buckets. Bucket 0 holds all of them at unit step;
// each further bucket doubles the step and adds the upper half.
constexpr int kSignificantDigits = 3;
constexpr int kSubBucketBits = 11;
constexpr int kHalfBits = kSubBucketBits - 1;
constexpr int64_t kSubBucketMask = (int64_t{1} << kSubBucketBits) - 1;
constexpr int64_t kHalf = int64_t{1} << kHalfBits;

int64_t IndexOf(int64_t value) {
  const int bucket = std::bit_width(static_cast<uint64_t>(value | kSubBucketMask)) - kSubBucketBits;
  const int64_t sub_bucket = value >> bucket;
  return (int64_t{bucket + 1} << kHalfBits) + sub_bucket - kHalf;
}

// The largest value that falls into the same place as the smallest one of `index`.
int64_t HighestAt(int64_t index) {
  const int64_t bucket = std::max<int64_t>((index >> kHalfBits) - 1, 0);
  const int64_t sub_bucket = index < kHalf ? index : (index & (kHalf - 1)) + kHalf;
  return ((sub_bucket + 1) << bucket) - 1;
}

template <typename Int>
void AppendBigEndian(Int value, std::string* out) {
  for (int shift = 8 * (sizeof(Int) - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

// ZigZag LEB128, as the V2 encoding has it.
void AppendZigZag(int64_t value, std::string* out) {
  uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) out->push_back(static_cast<char>(bits | 0x80));
  out->push_back(static_cast<char>(bits));
}

// A zlib stream (RFC 1950) of stored blocks: valid for every reader and needs no compressor.
std::string StoredZlib(const std::string& data) {
  constexpr size_t kBlock = 65535;
  std::string out = "\x78\x01";
  size_t begin = 0;
  do {
    const size_t size = std::min(kBlock, data.size() - begin);
    out.push_back(begin + size == data.size() ? 1 : 0);
    for (size_t field : {size, ~size}) {
      out.push_back(static_cast<char>(field));
      out.push_back(static_cast<char>(field >> 8));
    }
    out.append(data, begin, size);
    begin += size;
  } while (begin < data.size());
  uint32_t a = 1, b = 0;  // Adler-32
  for (char c : data) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  AppendBigEndian(b << 16 | a, &out);
  return out;
}

}  // namespace

void Histogram::Record(int64_t value) {
  value = std::clamp<int64_t>(value, 0, kHighestValue);
  const size_t index = static_cast<size_t>(IndexOf(value));
  if (index >= counts_.size()) counts_.resize((index / kHalf + 1) * kHalf, 0);
  ++counts_[index];
  ++count_;
  max_ = std::max(max_, value);
}

void Histogram::Add(const Histogram& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size(), 0);
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

int64_t Histogram::Percentile(double percentile) const {
  // One step down before rounding up: 0.999 * 1000 in floating point must not become 1000.
  const double exact = std::nextafter(percentile / 100 * static_cast<double>(count_), 0.0);
  const int64_t wanted = std::max<int64_t>(static_cast<int64_t>(std::ceil(exact)), 1);
  int64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(HighestAt(static_cast<int64_t>(i)), max_);
  }
  return max_;
}

std::string Histogram::Encoded() const {
  std::string payload;
  const int64_t end = count_ > 0 ? IndexOf(max_) + 1 : 0;
  for (int64_t i = 0; i < end;) {
    int64_t zeros = 0;
    while (i + zeros < end && counts_[i + zeros] == 0) ++zeros;
    AppendZigZag(zeros > 0 ? -zeros : counts_[i], &payload);
    i += std::max<int64_t>(zeros, 1);
  }
  std::string plain;
  AppendBigEndian<uint32_t>(0x1c849313, &plain);
  AppendBigEndian(static_cast<uint32_t>(payload.size()), &plain);
  AppendBigEndian<uint32_t>(0, &plain);  // normalizing index offset
  AppendBigEndian<uint32_t>(kSignificantDigits, &plain);
  AppendBigEndian<uint64_t>(1, &plain);
  AppendBigEndian<uint64_t>(kHighestValue, &plain);
  AppendBigEndian(std::bit_cast<uint64_t>(1.0), &plain);  // integer to double conversion ratio
  plain += payload;

  const std::string compressed = StoredZlib(plain);
  std::string framed;
  AppendBigEndian<uint32_t>(0x1c849314, &framed);
  AppendBigEndian(static_cast<uint32_t>(compressed.size()), &framed);
  return absl::Base64Escape(framed + compressed);
}

std::string HistogramLogHeader(double start_seconds_since_epoch) {
  return absl::StrFormat(
      "#[Histogram log format version 1.3]\n"
      "#[StartTime: %.3f (seconds since epoch)]\n"
      "#[BaseTime: %.3f (seconds since epoch)]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      start_seconds_since_epoch, start_seconds_since_epoch);
}

std::string HistogramLogLine(double begin_seconds, double length_seconds, const Histogram& values) {
  return absl::StrFormat("%.3f,%.3f,%.3f,%s\n", begin_seconds, length_seconds, values.max() / 1e6,
                         values.Encoded());
}

}  // namespace attend::client

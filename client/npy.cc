#include "client/npy.h"

#include <absl/strings/str_cat.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace attend::client {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are taken as they are");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr uint32_t kMaxHeaderBytes = 1 << 20;

absl::Status Bad(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

int64_t ElementBytes(std::string_view dtype) {
  if (dtype == "|b1") return 1;
  if (dtype == "<f2") return 2;
  if (dtype == "<f4" || dtype == "<i4") return 4;
  if (dtype == "<f8" || dtype == "<i8") return 8;
  return 0;
}

// The header is a Python dict of three known keys; nothing else of Python is understood.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  // An empty string is success, else what is wrong.
  std::string Parse(NpyArray* array) {
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Take('{')) return "the header is not a dict";
    while (!Take('}')) {
      const std::optional<std::string> key = QuotedString();
      if (!key || !Take(':')) return "the header is damaged";
      std::string wrong;
      if (*key == "descr") {
        wrong = ParseDescr(&array->dtype);
        has_descr = true;
      } else if (*key == "fortran_order") {
        wrong = ParseOrder();
        has_order = true;
      } else if (*key == "shape") {
        wrong = ParseShape(&array->shape);
        has_shape = true;
      } else {
        wrong = absl::StrCat("unknown header key '", *key, "'");
      }
      if (!wrong.empty()) return wrong;
      if (!Take(',') && !Peek('}')) return "the header is damaged";
    }
    SkipSpace();
    if (!rest_.empty()) return "something follows the header's dict";
    if (!has_descr) return "the header has no 'descr'";
    if (!has_order) return "the header has no 'fortran_order'";
    if (!has_shape) return "the header has no 'shape'";
    return "";
  }

 private:
  void SkipSpace() {
    const size_t n = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(n == std::string_view::npos ? rest_.size() : n);
  }
  bool Peek(char c) {
    SkipSpace();
    return !rest_.empty() && rest_.front() == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> QuotedString() {
    SkipSpace();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string ParseDescr(std::string* dtype) {
    const std::optional<std::string> descr = QuotedString();
    if (!descr) return "the dtype is structured, expected <f4, <f8, <f2, |b1, <i4 or <i8";
    if (ElementBytes(*descr) == 0) {
      return absl::StrCat("dtype '", *descr, "', expected <f4, <f8, <f2, |b1, <i4 or <i8",
                          " (use array.astype(\"<f4\"))");
    }
    *dtype = *descr;
    return "";
  }
  std::string ParseOrder() {
    if (TakeWord("False")) return "";
    if (TakeWord("True")) {
      return "Fortran order, expected C order (use numpy.ascontiguousarray)";
    }
    return "'fortran_order' is neither True nor False";
  }
  std::string ParseShape(std::vector<int64_t>* shape) {
    if (!Take('(')) return "'shape' is not a tuple";
    shape->clear();
    while (!Take(')')) {
      const std::optional<int64_t> extent = Extent();
      if (!extent) return "'shape' holds something that is no size";
      shape->push_back(*extent);
      if (!Take(',') && !Peek(')')) return "'shape' is damaged";
    }
    return "";
  }
  std::optional<int64_t> Extent() {
    SkipSpace();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (digits == 18) return std::nullopt;
      value = value * 10 + (rest_[digits] - '0');
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
};

// Bytes of the whole array, or nothing when the number leaves int64.
std::optional<int64_t> TotalBytes(const NpyArray& array) {
  int64_t bytes = ElementBytes(array.dtype);
  for (int64_t extent : array.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

bool ReadBytes(std::istream& in, char* to, int64_t count) {
  return static_cast<bool>(in.read(to, count));
}

absl::StatusOr<std::string> ReadHeader(std::istream& in, const std::string& path) {
  char start[8];
  if (!ReadBytes(in, start, 8) || std::string_view(start, 6) != kMagic) {
    return Bad(path, "not a NumPy .npy file (its magic is missing)");
  }
  const int major = static_cast<uint8_t>(start[6]);
  if (major < 1 || major > 3) {
    return Bad(path, absl::StrCat("format version ", major, ".", static_cast<uint8_t>(start[7]),
                                  ", expected 1.0 to 3.0"));
  }
  uint32_t length = 0;
  if (!ReadBytes(in, reinterpret_cast<char*>(&length), major == 1 ? 2 : 4)) {
    return Bad(path, "the file ends inside its header");
  }
  if (length > kMaxHeaderBytes) {
    return Bad(path,
               absl::StrCat("a header of ", length, " bytes, expected at most ", kMaxHeaderBytes));
  }
  std::string header(length, '\0');
  if (!ReadBytes(in, header.data(), length)) return Bad(path, "the file ends inside its header");
  return header;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const int exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255u : static_cast<uint32_t>(exponent - 15 + 127);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <typename To, typename From>
std::vector<To> Convert(const NpyArray& array) {
  std::vector<To> result(array.num_elements());
  const char* from = array.bytes.data();
  for (To& element : result) {
    From value;
    std::memcpy(&value, from, sizeof(From));
    from += sizeof(From);
    if constexpr (std::is_same_v<From, uint16_t>) {
      element = HalfToFloat(value);
    } else {
      element = static_cast<To>(value);
    }
  }
  return result;
}

template <typename To>
absl::StatusOr<std::vector<To>> ToReals(const NpyArray& array) {
  if (array.dtype == "<f4") return Convert<To, float>(array);
  if (array.dtype == "<f8") return Convert<To, double>(array);
  if (array.dtype == "<f2") return Convert<To, uint16_t>(array);
  if (array.dtype == "|b1") return Convert<To, uint8_t>(array);
  return absl::InvalidArgumentError(
      absl::StrCat("dtype '", array.dtype, "', expected <f4, <f8, <f2 or |b1"));
}

std::string SystemReason() { return std::strerror(errno); }

}  // namespace

int64_t NpyArray::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Bad(path, "a directory, expected a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": ", SystemReason()));
  const uintmax_t file_bytes = std::filesystem::file_size(path, error);
  if (error) return Bad(path, "not a regular file");

  absl::StatusOr<std::string> header = ReadHeader(in, path);
  if (!header.ok()) return header.status();
  NpyArray array;
  if (std::string wrong = HeaderParser(*header).Parse(&array); !wrong.empty()) {
    return Bad(path, wrong);
  }
  const std::optional<int64_t> expected = TotalBytes(array);
  if (!expected) return Bad(path, "a shape larger than any memory");
  // The file's size is checked before memory is taken for what its header claims.
  const int64_t held = static_cast<int64_t>(file_bytes) - static_cast<int64_t>(in.tellg());
  if (held != *expected) {
    return Bad(path, absl::StrCat(held, " bytes of data, expected ", *expected,
                                  " for its shape and dtype ", array.dtype));
  }
  array.bytes.resize(*expected);
  if (!ReadBytes(in, array.bytes.data(), *expected)) return Bad(path, "can't be read to its end");
  return array;
}

absl::StatusOr<std::vector<float>> ToFloats(const NpyArray& array) { return ToReals<float>(array); }

absl::StatusOr<std::vector<double>> ToDoubles(const NpyArray& array) {
  return ToReals<double>(array);
}

absl::Status WriteNpy(const std::string& path, std::span<const int64_t> shape,
                      std::span<const float> values) {
  std::string extents;
  for (int64_t extent : shape) absl::StrAppend(&extents, extent, ", ");
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  std::string header =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", extents, "), }");
  // The format wants the data to begin at a multiple of 64 bytes, after a line feed.
  constexpr size_t kPrefix = kMagic.size() + 4;
  header.resize((kPrefix + header.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  header += '\n';

  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const uint16_t length = static_cast<uint16_t>(header.size());
  out << kMagic << '\x01' << '\x00';
  out.write(reinterpret_cast<const char*>(&length), 2);
  out << header;
  out.write(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  out.close();
  if (!out) return absl::InternalError(absl::StrCat(path, ": ", SystemReason()));
  return absl::OkStatus();
}

}  // namespace attend::client

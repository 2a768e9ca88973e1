#include "core/safetensors.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/float_convert.h"
#include "core/quote.h"
#include "core/safetensors_header.h"

namespace attend {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's

// 0 for a dtype that the format doesn't know.
uint64_t BitsPerElement(absl::string_view dtype) {
  static constexpr struct {
    const char* name;
    uint64_t bits;
  } kDtypes[] = {{"F32", 32},    {"F16", 16},        {"BF16", 16},       {"F64", 64},
                 {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"U16", 16},
                 {"I16", 16},    {"U32", 32},        {"I32", 32},        {"U64", 64},
                 {"I64", 64},    {"C64", 64},        {"F8_E4M3", 8},     {"F8_E5M2", 8},
                 {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},
                 {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& known : kDtypes) {
    if (dtype == known.name) return known.bits;
  }
  return 0;
}

absl::Status TensorError(absl::string_view tensor, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor), ": ", problem));
}

// How many bytes the tensor must have.
absl::StatusOr<uint64_t> ByteSize(const std::string& name, const TensorInfo& tensor) {
  const uint64_t bits_per_element = BitsPerElement(tensor.dtype);
  if (bits_per_element == 0) {
    return TensorError(name, absl::StrCat("unknown dtype ", Quoted(tensor.dtype)));
  }
  uint64_t bits = 1;
  bool overflows = false;
  for (const uint64_t extent : tensor.shape) {
    overflows = overflows || __builtin_mul_overflow(bits, extent, &bits);
  }
  if (overflows || __builtin_mul_overflow(bits, bits_per_element, &bits)) {
    return TensorError(name, absl::StrCat(Describe(tensor), " overflows 64 bits"));
  }
  if (bits % 8 != 0) {
    return TensorError(name, absl::StrCat(Describe(tensor), " doesn't end at a whole byte"));
  }
  return bits / 8;
}

// Sorted by place, each tensor must begin where the one before ends, and the last end the file.
absl::Status CheckOffsets(const TensorMap& tensors, uint64_t data_size) {
  std::vector<const TensorMap::value_type*> sorted;
  for (const auto& entry : tensors) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t place = 0;
  for (const auto* entry : sorted) {
    const auto& [name, tensor] = *entry;
    const std::string offsets = absl::StrCat("data_offsets [", tensor.begin, ", ", tensor.end, "]");
    if (tensor.end < tensor.begin)
      return TensorError(name, absl::StrCat(offsets, " run backwards"));
    if (tensor.begin != place) {
      return TensorError(name,
                         absl::StrCat(offsets, tensor.begin > place ? " leave a gap" : " overlap",
                                      ": the tensor before ends at ", place));
    }
    const absl::StatusOr<uint64_t> bytes = ByteSize(name, tensor);
    if (!bytes.ok()) return bytes.status();
    if (tensor.end - tensor.begin != *bytes) {
      return TensorError(name, absl::StrCat(offsets, " hold ", tensor.end - tensor.begin,
                                            " bytes, but ", Describe(tensor), " takes ", *bytes));
    }
    place = tensor.end;
  }
  if (place == data_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the header's tensors take ", place, " bytes, but ", data_size, " follow it: the file ",
      place > data_size ? "was cut short" : "has bytes that belong to no tensor"));
}

// "[1, 4]" of element `index`.
std::string Place(uint64_t index, const std::vector<uint64_t>& shape) {
  std::vector<uint64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i]) place[i] = index % shape[i];
  return absl::StrCat("[", absl::StrJoin(place, ", "), "]");
}

}  // namespace

uint64_t TensorInfo::num_elements() const {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

std::string Describe(const TensorInfo& tensor) {
  constexpr std::size_t kLimit = 12;
  const std::vector<uint64_t>& shape = tensor.shape;
  const auto end = shape.begin() + static_cast<std::ptrdiff_t>(std::min(shape.size(), kLimit));
  return absl::StrCat(tensor.dtype, " [", absl::StrJoin(shape.begin(), end, ", "),
                      shape.size() > kLimit ? ", ...]" : "]");
}

absl::StatusOr<TensorMap> ParseSafetensorsHeader(absl::string_view header, uint64_t data_size) {
  absl::StatusOr<TensorMap> tensors = ParseHeaderEntries(header);
  if (!tensors.ok()) return tensors;
  absl::Status offsets = CheckOffsets(*tensors, data_size);
  if (!offsets.ok()) return offsets;
  return tensors;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  absl::StatusOr<ReadOnlyFile> file = ReadOnlyFile::Open(path);
  absl::Status status = file.status();
  if (file.ok()) {
    SafetensorsFile opened(name, *std::move(file));
    status = opened.ReadHeader();
    if (status.ok()) return opened;
  }
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Status SafetensorsFile::ReadHeader() {
  if (file_.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "holds ", file_.size(), " bytes; safetensors begins with 8 for the header's length"));
  }
  uint64_t length = 0;
  absl::Status read = file_.Read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (!read.ok()) return read;
  if (length > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("its first 8 bytes say that the header has ",
                                                   length, " bytes; the format allows ",
                                                   kMaxHeaderBytes));
  }
  if (length > file_.size() - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its first 8 bytes say that the header has ", length, " bytes, but only ",
                     file_.size() - kLengthBytes, " follow: the file was cut short"));
  }
  std::string header(length, '\0');
  read = file_.Read(kLengthBytes, std::as_writable_bytes(std::span(header.data(), header.size())));
  if (!read.ok()) return read;
  data_begin_ = kLengthBytes + length;
  absl::StatusOr<TensorMap> tensors = ParseSafetensorsHeader(header, file_.size() - data_begin_);
  if (!tensors.ok()) return tensors.status();
  tensors_ = *std::move(tensors);
  return absl::OkStatus();
}

absl::StatusOr<FloatBuffer> SafetensorsFile::ReadFloats(const std::string& tensor) const {
  const TensorInfo& info = tensors_.at(tensor);
  const auto error = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": tensor ", Quoted(tensor), " ", Describe(info), ": ", problem));
  };
  const std::optional<FloatType> type = ParseFloatType(info.dtype);
  if (!type) return error("expected dtype F32, F16, BF16 or F64");
  const uint64_t count = info.num_elements();
  FloatBuffer floats(static_cast<int64_t>(count));
  std::vector<std::byte> converted(*type == FloatType::kF32 ? 0 : info.end - info.begin);
  const std::span<std::byte> bytes =
      *type == FloatType::kF32 ? std::as_writable_bytes(floats.span()) : std::span(converted);
  absl::Status read = file_.Read(data_begin_ + info.begin, bytes);
  if (!read.ok()) return error(read.message());
  if (*type != FloatType::kF32) ConvertToFloat32(*type, bytes, floats.span());
  const auto bad = std::find_if_not(floats.span().begin(), floats.span().end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad == floats.span().end()) return floats;
  const uint64_t index = static_cast<uint64_t>(bad - floats.span().begin());
  double value = *bad;
  if (*type == FloatType::kF64) std::memcpy(&value, &bytes[index * sizeof value], sizeof value);
  return error(absl::StrCat("element ", Place(index, info.shape), " is ", value,
                            ", expected a number that is finite as float32"));
}

}  // namespace attend

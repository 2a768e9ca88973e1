#include "server/rpc/element_type.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/float_convert.h"

namespace attend {
namespace {

static_assert(std::endian::native == std::endian::little);

struct TypeRow {
  ElementType type;
  const char* name;
  int64_t size;
};

constexpr std::array<TypeRow, 5> kTypes = {{{ElementType::kF32, "F32", 4},
                                            {ElementType::kF16, "F16", 2},
                                            {ElementType::kBF16, "BF16", 2},
                                            {ElementType::kF64, "F64", 8},
                                            {ElementType::kBool, "BOOL", 1}}};

constexpr uint32_t kInfinity = 0x7f800000;

uint16_t ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kInfinity) return sign | 0x7e00;
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) return sign | 0x7c00;
  if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // Adding 0.5 leaves the half's denormal in the last bits, rounded by the addition itself.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(sum) - 0x3f000000);
  }
  const uint32_t tie_to_even = (magnitude >> 13) & 1;
  const uint32_t rounded = magnitude - ((127 - 15) << 23) + 0xfff + tie_to_even;
  return sign | static_cast<uint16_t>(rounded >> 13);
}

uint16_t ToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > kInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

FloatType FloatTypeOf(ElementType type) {
  return type == ElementType::kF16    ? FloatType::kF16
         : type == ElementType::kBF16 ? FloatType::kBF16
         : type == ElementType::kF64  ? FloatType::kF64
                                      : FloatType::kF32;
}

template <typename Element, typename Convert>
void EncodeEach(std::span<const float> floats, uint8_t* bytes, Convert convert) {
  for (const float value : floats) {
    const Element element = convert(value);
    std::memcpy(bytes, &element, sizeof(element));
    bytes += sizeof(element);
  }
}

}  // namespace

absl::StatusOr<ElementType> ParseElementType(absl::string_view name, absl::string_view field) {
  if (name.empty()) return ElementType::kF32;
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row.type;
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": unknown element type \"", name,
                                                 "\"; use \"F32\", \"F16\", \"BF16\", \"F64\" or, "
                                                 "for masks, \"BOOL\""));
}

absl::string_view NameOf(ElementType type) { return kTypes[static_cast<size_t>(type)].name; }

int64_t SizeOf(ElementType type) { return kTypes[static_cast<size_t>(type)].size; }

void DecodeFloats(ElementType type, ByteRange bytes, std::span<float> floats) {
  if (type == ElementType::kF32) {
    bytes.Read(floats.data(), floats.size_bytes());
    return;
  }
  std::array<std::byte, 4096> chunk;
  const size_t element = SizeOf(type);
  while (!floats.empty()) {
    const size_t count = std::min(floats.size(), chunk.size() / element);
    bytes.Read(chunk.data(), count * element);
    ConvertToFloat32(FloatTypeOf(type), std::span(chunk).first(count * element),
                     floats.first(count));
    floats = floats.subspan(count);
  }
}

void EncodeFloats(ElementType type, std::span<const float> floats, uint8_t* bytes) {
  switch (type) {
    case ElementType::kF16:
      return EncodeEach<uint16_t>(floats, bytes, ToHalf);
    case ElementType::kBF16:
      return EncodeEach<uint16_t>(floats, bytes, ToBfloat);
    case ElementType::kF64:
      return EncodeEach<double>(floats, bytes, [](float v) { return static_cast<double>(v); });
    case ElementType::kF32:
    case ElementType::kBool:
      if (!floats.empty()) std::memcpy(bytes, floats.data(), floats.size_bytes());
  }
}

}  // namespace attend

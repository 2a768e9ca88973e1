#include "core/float_convert.h"

#include <bit>
#include <cstring>

namespace attend {
namespace {

static_assert(std::endian::native == std::endian::little);

float FromF16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  // A subnormal is scaled as an integer: its float32 is normal, whatever DAZ says.
  const float magnitude = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                          : exponent == 0x1f
                              ? std::bit_cast<float>(0x7f800000u | fraction << 13)
                              : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

float FromBF16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float FromF64(double value) { return static_cast<float>(value); }

template <typename Stored>
void Convert(std::span<const std::byte> source, std::span<float> target, float (*convert)(Stored)) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, source.data() + i * sizeof(Stored), sizeof(Stored));
    target[i] = convert(stored);
  }
}

}  // namespace

std::optional<FloatType> ParseFloatType(absl::string_view name) {
  if (name == "F32") return FloatType::kF32;
  if (name == "F16") return FloatType::kF16;
  if (name == "BF16") return FloatType::kBF16;
  if (name == "F64") return FloatType::kF64;
  return std::nullopt;
}

std::size_t BytesPerElement(FloatType type) {
  return type == FloatType::kF64 ? 8 : type == FloatType::kF32 ? 4 : 2;
}

void ConvertToFloat32(FloatType type, std::span<const std::byte> source, std::span<float> target) {
  switch (type) {
    case FloatType::kF32:
      if (!target.empty()) std::memcpy(target.data(), source.data(), target.size_bytes());
      return;
    case FloatType::kF16:
      return Convert<uint16_t>(source, target, FromF16);
    case FloatType::kBF16:
      return Convert<uint16_t>(source, target, FromBF16);
    case FloatType::kF64:
      return Convert<double>(source, target, FromF64);
  }
}

}  // namespace attend

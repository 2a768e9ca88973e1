// Floating-point numbers as files and callers store them, little endian, to float32.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace attend {

enum class FloatType { kF32, kF16, kBF16, kF64 };

// "F32", "F16", "BF16" or "F64"; nothing for any other name.
std::optional<FloatType> ParseFloatType(absl::string_view name);
std::size_t BytesPerElement(FloatType type);

// target[i] = the i-th element of `source`; source.size() = target.size() * BytesPerElement(type),
// at any alignment. Exact but for F64, which rounds to nearest; what float32 can't hold becomes an
// infinity.
void ConvertToFloat32(FloatType type, std::span<const std::byte> source, std::span<float> target);

}  // namespace attend

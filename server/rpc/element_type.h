// The element types of the wire and their conversion to and from float32.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <span>

#include "server/rpc/wire_reader.h"

namespace attend {

enum class ElementType { kF32, kF16, kBF16, kF64, kBool };

// "F32" (also for ""), "F16", "BF16", "F64", "BOOL"; INVALID_ARGUMENT naming `field` and the
// choice.
absl::StatusOr<ElementType> ParseElementType(absl::string_view name, absl::string_view field);
absl::string_view NameOf(ElementType type);
int64_t SizeOf(ElementType type);

// Little endian elements of `type`, which is not kBool, to float32. A float64 beyond float32's
// range becomes infinite. `bytes` holds as many elements as `floats` at least; a prefix is read.
void DecodeFloats(ElementType type, ByteRange bytes, std::span<float> floats);
// Float32 to little endian elements, rounded to nearest, ties to even. `bytes` has room for them.
// Right also where denormals are flushed.
void EncodeFloats(ElementType type, std::span<const float> floats, uint8_t* bytes);

}  // namespace attend

#include "client/tensors.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <bit>

namespace attend::client {
namespace {

static_assert(std::endian::native == std::endian::little, "Tensor.data is little endian");

void Set(const char* dtype, std::initializer_list<int64_t> shape, const void* data, size_t bytes,
         v1::Tensor* tensor) {
  tensor->Clear();
  tensor->set_dtype(dtype);
  tensor->mutable_shape()->Assign(shape.begin(), shape.end());
  tensor->set_data(data, bytes);
}

}  // namespace

void SetFloats(std::initializer_list<int64_t> shape, std::span<const float> values,
               v1::Tensor* tensor) {
  Set("F32", shape, values.data(), values.size_bytes(), tensor);
}

void SetMask(std::initializer_list<int64_t> shape, std::span<const uint8_t> allowed,
             v1::Tensor* tensor) {
  Set("BOOL", shape, allowed.data(), allowed.size(), tensor);
}

absl::StatusOr<std::span<const float>> Floats(const v1::Tensor& tensor) {
  if (!tensor.dtype().empty() && tensor.dtype() != "F32") {
    return absl::InternalError(absl::StrCat("a tensor of ", tensor.dtype(), ", expected F32"));
  }
  const bool raw = tensor.values().empty();
  const size_t count = raw ? tensor.data().size() / sizeof(float) : tensor.values().size();
  int64_t expected = 1;
  for (int64_t extent : tensor.shape()) {
    if (extent < 0 || __builtin_mul_overflow(expected, extent, &expected)) expected = -1;
    if (expected < 0) break;
  }
  if (static_cast<int64_t>(count) != expected ||
      (raw && tensor.data().size() % sizeof(float) != 0)) {
    return absl::InternalError(
        absl::StrCat("a tensor of shape ", ShapeText(tensor), " with ", count, " elements"));
  }
  if (!raw) return std::span<const float>(tensor.values().data(), count);
  // A std::string's bytes are aligned well enough for float: on the heap by malloc, inside by the
  // pointer beside them.
  return std::span<const float>(reinterpret_cast<const float*>(tensor.data().data()), count);
}

std::string ShapeText(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string ShapeText(const v1::Tensor& tensor) {
  return ShapeText(std::span<const int64_t>(tensor.shape().data(), tensor.shape_size()));
}

}  // namespace attend::client

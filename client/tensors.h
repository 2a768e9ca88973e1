// Numbers into and out of the wire's Tensor message, without copies that can be left out.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "attend/v1/attend.pb.h"

namespace attend::client {

// float32, row major; `values` has as many elements as `shape` says. Copies once, into the message.
void SetFloats(std::initializer_list<int64_t> shape, std::span<const float> values,
               v1::Tensor* tensor);
// A mask; 1 = may be attended to.
void SetMask(std::initializer_list<int64_t> shape, std::span<const uint8_t> allowed,
             v1::Tensor* tensor);

// A view of a float32 tensor's own bytes, valid as long as `tensor` is. INTERNAL when its dtype is
// not F32 or its size is not what its shape says: a server that breaks the contract.
absl::StatusOr<std::span<const float>> Floats(const v1::Tensor& tensor);

// "[3, 4]"
std::string ShapeText(std::span<const int64_t> shape);
std::string ShapeText(const v1::Tensor& tensor);

}  // namespace attend::client

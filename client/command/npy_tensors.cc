#include "client/command/npy_tensors.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "client/npy.h"
#include "client/tensors.h"

namespace attend::client {
namespace {

absl::Status ReadTensor(const std::string& field, const std::string& path, bool mask,
                        v1::Tensor* tensor) {
  absl::StatusOr<NpyArray> array = ReadNpy(path);
  if (!array.ok()) {
    return absl::Status(array.status().code(), absl::StrCat(field, ": ", array.status().message()));
  }
  const std::string& dtype = array->dtype;
  const char* wire = mask && dtype == "|b1"    ? "BOOL"
                     : !mask && dtype == "<f4" ? "F32"
                     : !mask && dtype == "<f8" ? "F64"
                     : !mask && dtype == "<f2" ? "F16"
                                               : nullptr;
  if (wire == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", path, " has dtype '", dtype, "', expected ",
                     mask ? "bool (|b1)" : "float32, float64 or float16 (<f4, <f8, <f2)"));
  }
  tensor->set_dtype(wire);
  tensor->mutable_shape()->Assign(array->shape.begin(), array->shape.end());
  tensor->set_data(std::move(array->bytes));
  return absl::OkStatus();
}

absl::Status ExpectShape(const std::string& field, const v1::Tensor& tensor,
                         const std::vector<int64_t>& expected) {
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (shape == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": shape ", ShapeText(shape), ", expected ",
                                                 ShapeText(expected), " for ", expected[0],
                                                 " items"));
}

}  // namespace

absl::Status ReadInputs(const InputFiles& files, v1::AttendRequest* request) {
  absl::Status status = ReadTensor("items", files.items, false, request->mutable_items());
  if (!status.ok()) return status;
  if (request->items().shape_size() != 2 || request->items().shape(0) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("items: shape ", ShapeText(request->items()),
                                                   ", expected [N, d_f] with N at least 1"));
  }
  const int64_t n = request->items().shape(0);
  const auto read = [&](const char* field, const std::string& path, bool mask,
                        const std::vector<int64_t>& shape, v1::Tensor* (v1::AttendRequest::*to)()) {
    if (!status.ok() || path.empty()) return;
    v1::Tensor* tensor = (request->*to)();
    status = ReadTensor(field, path, mask, tensor);
    if (status.ok()) status = ExpectShape(field, *tensor, shape);
  };
  read("key_mask", files.key_mask, true, {n}, &v1::AttendRequest::mutable_key_mask);
  read("attention_mask", files.attention_mask, true, {n, n},
       &v1::AttendRequest::mutable_attention_mask);
  read("attention_bias", files.attention_bias, false, {n, n},
       &v1::AttendRequest::mutable_attention_bias);
  return status;
}

absl::Status WriteTensor(const std::string& path, const v1::Tensor& tensor) {
  const absl::StatusOr<std::span<const float>> values = Floats(tensor);
  if (!values.ok()) return values.status();
  const absl::Status status =
      WriteNpy(path, {tensor.shape().data(), static_cast<size_t>(tensor.shape_size())}, *values);
  // What the file system refuses is the caller's to mend, not the server's.
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

}  // namespace attend::client

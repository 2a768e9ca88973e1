// From NumPy files to the wire's tensors and back.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "attend/v1/attend.pb.h"

namespace attend::client {

// The four inputs of a request; "" is absent.
struct InputFiles {
  std::string items = {}, key_mask = {}, attention_mask = {}, attention_bias = {};
};

// Reads the files into `request`, bytes as they are. INVALID_ARGUMENT or NOT_FOUND naming the field
// and the file, for what can be known here: dtypes, and shapes that don't fit the items'.
absl::Status ReadInputs(const InputFiles& files, v1::AttendRequest* request);

// Writes a float32 tensor. INTERNAL when the tensor is not one; INVALID_ARGUMENT when `path` can't
// be written.
absl::Status WriteTensor(const std::string& path, const v1::Tensor& tensor);

}  // namespace attend::client

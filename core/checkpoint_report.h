// What a folder with a checkpoint holds and how to serve a layer of it, for `attend models check`.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace attend {

// Text for people: the tensors by dtype, every attention layer with its layout and shapes, or why
// it can't be served, and an attend.json ready for the layer at `tensor_prefix`, or for the first
// that can be served when that is absent or "". An attend.json that is there is checked as
// LoadModel would. INVALID_ARGUMENT when `directory` can't be read or no layer can be served, or
// not the one asked for; the message then holds what is known.
absl::StatusOr<std::string> DescribeCheckpoint(const std::string& directory,
                                               const std::string& tensor_prefix = "");

}  // namespace attend

// The safetensors format: 8 bytes with the length of a JSON header, the header, the tensors' bytes.
// https://github.com/huggingface/safetensors; read and refused as its reference reader 0.8 does.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/float_buffer.h"
#include "core/read_only_file.h"

namespace attend {

struct TensorInfo {
  std::string dtype;            // as written: "F32", "I64" ...
  std::vector<uint64_t> shape;  // row major; empty for a scalar
  uint64_t begin = 0, end = 0;  // bytes, counted from the end of the header

  uint64_t num_elements() const;  // never overflows: ParseSafetensorsHeader checked it
};

using TensorMap = std::map<std::string, TensorInfo>;

// "F32 [2, 3]"; the first twelve extents of more.
std::string Describe(const TensorInfo& tensor);

// `data_size` is how many bytes follow the header. The tensors must cover them from first to last
// without gap or overlap. INVALID_ARGUMENT naming the tensor, what its entry says and what was
// expected.
absl::StatusOr<TensorMap> ParseSafetensorsHeader(absl::string_view header, uint64_t data_size);

// An open file whose header has been checked against its size. Thread-safe once open.
class SafetensorsFile {
 public:
  // INVALID_ARGUMENT, or NOT_FOUND when there is no such file; messages begin with the file's name
  // without its folder.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& name() const { return name_; }
  const TensorMap& tensors() const { return tensors_; }

  // The tensor's elements as float32. INVALID_ARGUMENT naming the tensor when its dtype is not F32,
  // F16, BF16 or F64, or naming the place of an element that is not finite as float32. The tensor
  // must be in tensors().
  absl::StatusOr<FloatBuffer> ReadFloats(const std::string& tensor) const;

 private:
  SafetensorsFile(std::string name, ReadOnlyFile file)
      : name_(std::move(name)), file_(std::move(file)) {}

  absl::Status ReadHeader();

  std::string name_;
  ReadOnlyFile file_;
  uint64_t data_begin_ = 0;
  TensorMap tensors_;
};

}  // namespace attend

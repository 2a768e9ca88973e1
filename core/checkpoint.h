// The tensors of a model's folder, in one safetensors file or in shards.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "core/float_buffer.h"
#include "core/safetensors.h"

namespace attend {

// Open files. Thread-safe once open.
class Checkpoint {
 public:
  // DIRECTORY/model.safetensors or, where that is absent, the shards that
  // DIRECTORY/model.safetensors.index.json names in its "weight_map". NOT_FOUND when neither is
  // there or a shard is missing; INVALID_ARGUMENT naming the file and what is wrong in it.
  static absl::StatusOr<Checkpoint> Open(const std::string& directory);

  // "model.safetensors" or "model.safetensors.index.json".
  const std::string& name() const { return name_; }
  // Where each tensor is described; tensors of a shard that the index doesn't list are left out.
  const TensorMap& tensors() const { return tensors_; }
  // As SafetensorsFile::ReadFloats.
  absl::StatusOr<FloatBuffer> ReadFloats(const std::string& tensor) const;

 private:
  absl::Status OpenShards(const std::string& directory, const std::string& index);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;  // tensor -> its place in files_
  TensorMap tensors_;
};

}  // namespace attend

#include "core/checkpoint.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "core/quote.h"
#include "core/strict_json.h"

namespace attend {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexBytes = 100'000'000;

absl::Status IndexError(absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(kIndex, ": ", problem));
}

// A shard lies beside its index.
bool IsShardName(const Json& value) {
  return value.is_string() && value.get<std::string>().find('/') == std::string::npos &&
         absl::EndsWith(value.get<std::string>(), ".safetensors");
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory) {
  Checkpoint checkpoint;
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(directory + "/" + kSingleFile);
  checkpoint.name_ = file.ok() ? kSingleFile : kIndex;
  if (file.ok()) {
    checkpoint.tensors_ = file->tensors();
    for (const auto& [name, info] : checkpoint.tensors_) checkpoint.file_of_[name] = 0;
    checkpoint.files_.push_back(*std::move(file));
    return checkpoint;
  }
  if (!absl::IsNotFound(file.status())) return file.status();
  const absl::StatusOr<std::string> index = ReadTextFile(directory + "/" + kIndex, kMaxIndexBytes);
  if (absl::IsNotFound(index.status())) {
    return absl::NotFoundError(
        absl::StrCat(kSingleFile, ": there is no such file, and no ", kIndex));
  }
  if (!index.ok()) return IndexError(index.status().message());
  absl::Status opened = checkpoint.OpenShards(directory, *index);
  if (!opened.ok()) return opened;
  return checkpoint;
}

absl::Status Checkpoint::OpenShards(const std::string& directory, const std::string& index) {
  const absl::StatusOr<Json> json = ParseStrictJson(index);
  if (!json.ok()) return IndexError(json.status().message());
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return IndexError("expected an object with a \"weight_map\" of tensor names and file names");
  }
  std::map<std::string, std::size_t> places;
  for (const auto& [tensor, shard] : (*json)["weight_map"].items()) {
    if (!IsShardName(shard)) {
      return IndexError(absl::StrCat("weight_map: ", Quoted(tensor), ": ", Excerpt(shard),
                                     ", expected the name of a .safetensors file in this folder"));
    }
    const std::string name = shard.get<std::string>();
    const auto [place, is_new] = places.try_emplace(name, files_.size());
    if (is_new) {
      absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(directory + "/" + name);
      if (!file.ok()) {
        return absl::Status(file.status().code(),
                            absl::StrCat(kIndex, ": ", file.status().message()));
      }
      files_.push_back(*std::move(file));
    }
    const TensorMap& held = files_[place->second].tensors();
    const auto info = held.find(tensor);
    if (info == held.end()) {
      return IndexError(absl::StrCat("weight_map: ", Quoted(tensor), " should be in ", name,
                                     ", which has no such tensor"));
    }
    tensors_.insert(*info);
    file_of_[tensor] = place->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<FloatBuffer> Checkpoint::ReadFloats(const std::string& tensor) const {
  return files_[file_of_.at(tensor)].ReadFloats(tensor);
}

}  // namespace attend

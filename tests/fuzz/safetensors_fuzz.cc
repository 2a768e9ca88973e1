// Any bytes as a safetensors file: opened, described, every tensor read, a layer looked for.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/safetensors.h"
#include "core/tensor_layouts.h"

namespace attend {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void ReadAll(const SafetensorsFile& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    Require(tensor.begin <= tensor.end);
    const absl::StatusOr<FloatBuffer> floats = file.ReadFloats(name);
    if (!floats.ok()) continue;
    Require(static_cast<uint64_t>(floats->size()) == tensor.num_elements());
    for (const float value : floats->span()) Require(std::isfinite(value));
  }
}

}  // namespace
}  // namespace attend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int memory = memfd_create("safetensors", 0);
  attend::Require(memory >= 0 && write(memory, data, size) == static_cast<ssize_t>(size));
  const auto file = attend::SafetensorsFile::Open("/proc/self/fd/" + std::to_string(memory));
  if (file.ok()) {
    attend::ReadAll(*file);
    for (const std::string& prefix : attend::FindLayerPrefixes(file->tensors())) {
      (void)attend::RecognizeLayer(file->tensors(), prefix);
    }
    (void)attend::RecognizeLayer(file->tensors(), "");
  }
  attend::Require(!file.status().message().empty() || file.ok());
  close(memory);
  return 0;
}

// Model folders made by tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace attend {

// An empty folder, removed with all that is in it.
class TempDirectory {
 public:
  TempDirectory() : path_(testing::TempDir() + "/attend_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Writes PATH/name, making its folders; returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

 private:
  std::string path_;
};

struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";
  std::string bytes = "";  // filled with F32 numbers 0.01, 0.02 ... when empty
};

inline std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// 8 bytes with the length of `header`, then both parts.
inline std::string SafetensorsOf(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

inline std::string Safetensors(const std::vector<StoredTensor>& tensors) {
  std::string header = "{", data;
  for (const StoredTensor& tensor : tensors) {
    std::string bytes = tensor.bytes, shape;
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
      count *= extent;
    }
    if (bytes.empty()) {
      std::vector<float> values(static_cast<size_t>(count));
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i + 1);
      bytes = Bytes(values);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + bytes.size()) + "]}";
    data += bytes;
  }
  return SafetensorsOf(header + "}", data);
}

}  // namespace attend

// NumPy's .npy files, version 1.0 to 3.0, C order, little endian.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attend::client {

struct NpyArray {
  std::string dtype;  // "<f4" "<f8" "<f2" "|b1" "<i4" "<i8"
  std::vector<int64_t> shape;
  std::string bytes;  // row major

  int64_t num_elements() const;
};

// INVALID_ARGUMENT naming the file and what is wrong (magic, header, dtype, Fortran order, size);
// NOT_FOUND when it can't be opened.
absl::StatusOr<NpyArray> ReadNpy(const std::string& path);
// The elements as float32 or float64; INVALID_ARGUMENT for a dtype that is not a float's or bool.
absl::StatusOr<std::vector<float>> ToFloats(const NpyArray& array);
absl::StatusOr<std::vector<double>> ToDoubles(const NpyArray& array);
// float32. INTERNAL with the system's reason when it can't be written.
absl::Status WriteNpy(const std::string& path, std::span<const int64_t> shape,
                      std::span<const float> values);

}  // namespace attend::client

// Float storage for numbers that will be written before they are read.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace attend {

// A fixed number of floats, aligned to a cache line, not initialised. Moves, does not copy.
// Thread-compatible. Throws std::bad_alloc when memory is short, like a std::vector.
class FloatBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  FloatBuffer() = default;
  explicit FloatBuffer(int64_t size) : size_(size) {
    if (size == 0) return;
    const std::size_t bytes =
        (static_cast<std::size_t>(size) * sizeof(float) + kAlignment - 1) & ~(kAlignment - 1);
    data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (!data_) throw std::bad_alloc();
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<float> span() { return {data_.get(), static_cast<std::size_t>(size_)}; }
  std::span<const float> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float[], Free> data_;
  int64_t size_ = 0;
};

}  // namespace attend

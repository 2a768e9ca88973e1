// Float storage for numbers that will be written before they are read.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace attend {

// A fixed number of floats, aligned to a cache line, not initialised. Moves, does not copy. Large
// blocks come from and return to a pool of the process, so that in steady state nobody asks the
// system for memory or waits for its zeroed pages. Thread-compatible. Throws std::bad_alloc when
// memory is short, like a std::vector.
class FloatBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  // What the pool holds at most, unused.
  static constexpr std::size_t kPoolBytes = std::size_t{128} << 20;

  FloatBuffer() = default;
  explicit FloatBuffer(int64_t size);
  ~FloatBuffer() { Release(); }
  FloatBuffer(FloatBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept {
    if (this != &other) {
      Release();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<float> span() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const float> span() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  void Release() noexcept;

  float* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace attend

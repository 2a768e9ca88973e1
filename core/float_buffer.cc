#include "core/float_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <new>

#include "core/mutex.h"

namespace attend {
namespace {

constexpr std::size_t kSmallestPooled = std::size_t{32} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kWorthAHugePage = kHugePage / 2;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooling = false;  // it would hide uses after the end of a buffer's life
#else
constexpr bool kPooling = true;
#endif

// Four sizes for every power of two: at most a fifth of a block is unused.
std::size_t RoundToClass(std::size_t bytes) {
  if (bytes < kSmallestPooled) {
    return (bytes + FloatBuffer::kAlignment - 1) & ~(FloatBuffer::kAlignment - 1);
  }
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

int ClassOf(std::size_t rounded) {
  const int power = std::bit_width(rounded) - 1;
  return 4 * power + static_cast<int>((rounded >> (power - 2)) & 3);
}

// Free blocks of every class, linked through their first bytes.
class Pool {
 public:
  void* Take(std::size_t rounded) {
    MutexLock lock(&mutex_);
    Link*& first = free_[ClassOf(rounded)];
    if (first == nullptr) return nullptr;
    held_ -= rounded;
    return std::exchange(first, first->next);
  }

  bool Keep(void* block, std::size_t rounded) {
    MutexLock lock(&mutex_);
    if (held_ + rounded > FloatBuffer::kPoolBytes) return false;
    held_ += rounded;
    Link*& first = free_[ClassOf(rounded)];
    first = new (block) Link{first};
    return true;
  }

 private:
  struct Link {
    Link* next;
  };
  Mutex mutex_;
  std::array<Link*, 256> free_ ABSL_GUARDED_BY(mutex_) = {};
  std::size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
};

Pool& ThePool() {
  static Pool* const pool = new Pool;  // outlives every buffer
  return *pool;
}

}  // namespace

FloatBuffer::FloatBuffer(int64_t size) : size_(size) {
  if (size == 0) return;
  const std::size_t bytes = RoundToClass(static_cast<std::size_t>(size) * sizeof(float));
  void* block = kPooling && bytes >= kSmallestPooled ? ThePool().Take(bytes) : nullptr;
  if (block == nullptr) {
    const bool huge = bytes >= kWorthAHugePage;
    const std::size_t size = huge ? (bytes + kHugePage - 1) & ~(kHugePage - 1) : bytes;
    block = std::aligned_alloc(huge ? kHugePage : kAlignment, size);
    if (block == nullptr) throw std::bad_alloc();
    if (huge) madvise(block, size, MADV_HUGEPAGE);  // fewer TLB misses; harmless if refused
  }
  data_ = static_cast<float*>(block);
}

void FloatBuffer::Release() noexcept {
  if (data_ == nullptr) return;
  const std::size_t bytes = RoundToClass(static_cast<std::size_t>(size_) * sizeof(float));
  if (kPooling && bytes >= kSmallestPooled && ThePool().Keep(data_, bytes)) return;
  std::free(data_);
}

}  // namespace attend

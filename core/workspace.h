// What one worker keeps between tiles.
#pragma once

#include <array>
#include <cstdint>

#include "core/float_buffer.h"

namespace attend {

// Scratch memory in numbered slots. A slot grows to the largest size asked of it and stays, so that
// in steady state a tile allocates nothing. One thread uses it.
class Workspace {
 public:
  static constexpr int kSlots = 16;

  // At least `size` floats of slot `slot`, aligned to a cache line, holding anything. Valid until
  // the next call for the same slot.
  float* Floats(int slot, int64_t size) {
    FloatBuffer& buffer = slots_[slot];
    if (buffer.size() < size) buffer = FloatBuffer(size);
    return buffer.data();
  }
  int64_t bytes() const {
    int64_t floats = 0;
    for (const FloatBuffer& slot : slots_) floats += slot.size();
    return floats * static_cast<int64_t>(sizeof(float));
  }

 private:
  std::array<FloatBuffer, kSlots> slots_;
};

}  // namespace attend

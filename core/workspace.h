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
    labels_[slot] = 0;
    return buffer.data();
  }
  // Names what the slot holds now, so that a later tile may find it there instead of making it
  // anew. `label` is above 0 and unique in the process.
  void Label(int slot, int64_t label) { labels_[slot] = label; }
  // What Label named, or null when the slot has been asked for since.
  const float* Find(int slot, int64_t label) const {
    return labels_[slot] == label ? slots_[slot].data() : nullptr;
  }
  int64_t bytes() const {
    int64_t floats = 0;
    for (const FloatBuffer& slot : slots_) floats += slot.size();
    return floats * static_cast<int64_t>(sizeof(float));
  }

 private:
  std::array<FloatBuffer, kSlots> slots_;
  std::array<int64_t, kSlots> labels_ = {};
};

}  // namespace attend

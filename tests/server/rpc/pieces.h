// Bytes cut into pieces, as a body arrives in slices.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/rpc/wire_reader.h"

namespace attend {

// Copies `bytes` into pieces of random sizes, some of them empty.
class Pieces {
 public:
  Pieces(const std::string& bytes, std::mt19937& random) {
    std::uniform_int_distribution<size_t> size(0, 1 + bytes.size() / 3);
    for (size_t start = 0; start < bytes.size();) {
      const size_t count = std::min(size(random), bytes.size() - start);
      storage_.emplace_back(bytes.begin() + start, bytes.begin() + start + count);
      start += count;
    }
    for (const auto& piece : storage_) views_.emplace_back(piece);
  }
  ByteRange range() const { return ByteRange(views_); }

 private:
  std::vector<std::vector<uint8_t>> storage_;
  std::vector<Bytes> views_;
};

}  // namespace attend

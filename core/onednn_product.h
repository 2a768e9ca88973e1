// The one form of matrix product that attention is made of: C = A B with B packed beforehand.
//
// oneDNN computes it as a 1x1 convolution: rows are pixels, `inner` the input channels, `columns`
// the output channels. Unlike its matmul, the convolution takes B in blocks that the FMA kernel
// reads as they lie, so that nothing is repacked at every call, and every element is one chain of
// fused multiply-adds in the order of `inner`, whatever the number of rows and the row's place.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "core/workspace.h"

namespace attend {

// L: columns that oneDNN's kernel holds in one register on this machine, 8 or 16.
int64_t PackLanes();

inline int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// A is dense [rows, inner], C dense [rows, columns], B [inner, columns] in blocks of L x L:
// [columns/L][inner/L][L of inner][L of columns]. inner and columns are multiples of L.
struct ProductShape {
  int64_t rows = 0, inner = 0, columns = 0;
  bool operator==(const ProductShape&) const = default;
  double flop() const { return 2.0 * rows * inner * columns; }
};

// Where element (i, c) of a B with `inner` rows lies.
inline int64_t PackedIndex(int64_t i, int64_t c, int64_t inner, int64_t lanes) {
  return ((c / lanes) * (inner / lanes) + i / lanes) * lanes * lanes + (i % lanes) * lanes +
         c % lanes;
}

// A ready oneDNN primitive. Immutable; any number of threads may run it at once.
class Product {
 public:
  virtual ~Product() = default;
  // c = a b. The calling thread has called InitComputeThread. oneDNN's failure is the caller's to
  // report: INTERNAL.
  virtual absl::Status Run(const float* a, const float* packed_b, float* c,
                           Workspace& workspace) const = 0;
};

// From the process's bounded cache (GetPrimitiveCacheStats), created at the first use of its shape.
// Which primitive a shape gets never depends on what the cache holds. Thread-safe.
absl::StatusOr<std::shared_ptr<const Product>> GetProduct(const ProductShape& shape);

}  // namespace attend

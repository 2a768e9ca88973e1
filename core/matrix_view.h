// A matrix somebody else owns: where it starts, how large it is, how far apart its rows are.
#pragma once

#include <cstdint>

namespace attend {

// Rows of `columns` elements each, `stride` elements apart. Does not own; copying copies the view.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* data, int64_t rows, int64_t columns)
      : MatrixView(data, rows, columns, columns) {}
  MatrixView(T* data, int64_t rows, int64_t columns, int64_t stride)
      : data(data), rows(rows), columns(columns), stride(stride) {}

  T* row(int64_t i) const { return data + i * stride; }
  bool empty() const { return data == nullptr; }
};

}  // namespace attend

// What attention does to one row of numbers, by the widest vectors of this machine (Highway).
//
// Letters: s_ij scores, A(i) the items that i may attend to, m a maximum, see DESIGN's mathematics
// in core/attention_parameters.h. Unless said otherwise rows are aligned to 64 bytes, of `width`
// floats, a multiple of kRowAlignment for scores and of PackLanes() for everything else. There is
// no scalar tail: an element's bits depend on its column and its row's numbers alone. The calling
// thread has called InitComputeThread. Thread-safe.
#pragma once

#include <cstdint>

#include "core/matrix_view.h"

namespace attend {

// Score rows are multiples of this: 16 floats, one AVX-512 register, one cache line.
inline constexpr int64_t kRowAlignment = 16;

// Holds the vectors to at most `lanes` floats, for the whole process: rows that were laid out for
// oneDNN's registers must not be read by wider ones. Call before any other thread computes.
void LimitSimdLanes(int64_t lanes);

// Row i of one head for a block of keys: which of its pairs (i, j) are in A(i), and what is added.
struct ScoreRow {
  float* scores = nullptr;  // [width]: dot(q_i, k_j) before, s_ij after, -inf outside A(i)
  int64_t width = 0;
  int64_t limit = 0;  // keys of the block from `limit` on are not in A(i)
  float scale = 1;
  const float* bias = nullptr;        // [limit] or null; -inf: not in A(i)
  const uint8_t* mask = nullptr;      // [limit] or null; 0: not in A(i)
  const uint8_t* key_mask = nullptr;  // likewise
};
struct ScoreRowResult {
  float maximum;  // over A(i), -inf when it is empty
  bool finite;    // every score in A(i) is
};
// s_ij = scale * dot(q_i, k_j) + bias_ij. Masked pairs are left out by selection: what they hold,
// NaN included, reaches nothing.
ScoreRowResult FinishScores(const ScoreRow& row);

// The same where nothing is masked or added: the products stay unscaled up to `limit`, and the
// maximum is theirs.
ScoreRowResult ScanProducts(float* products, int64_t width, int64_t limit);

// The normalizers, in place, on such rows; outside A(i) they give +0.
// e^(scale (s - maximum)); returns the sum. scale > 0: 1 for scores, for products theirs.
float ExpRow(float* scores, int64_t width, float maximum, float scale);
void SigmoidRow(float* scores, int64_t width);             // 1 / (1 + e^-s)
void ReluRow(float* scores, int64_t width, float factor);  // factor * max(s, 0)
void NoneRow(float* scores, int64_t width);                // s
void SparsemaxRow(float* scores, int64_t width, float maximum, float threshold);  // max(s-m-t, 0)

// ScanProducts, then ExpRow by the larger of `maximum` and the row's own; an empty row becomes
// zeros.
struct SoftmaxRowResult {
  float maximum;
  float sum;
  bool finite;
};
SoftmaxRowResult SoftmaxProducts(float* products, int64_t width, int64_t limit, float maximum,
                                 float scale);

// Adds to `sum` and `count` those z = s - maximum that exceed `threshold`: one Newton step of
// sparsemax solves sum_(z > t) (z - t) = 1 for t (Martins and Astudillo 2016, equation 4).
struct SparsemaxSupport {
  float sum = 0;
  float count = 0;
};
void AddSparsemaxSupport(const float* scores, int64_t width, float maximum, float threshold,
                         SparsemaxSupport* support);

// old[r] = e^(scale (old[r] - now[r])), and 1 where now[r] is -inf; r < width.
void RescaleFactors(float* old, const float* now, int64_t width, float scale);
// y = y * factor + addend
void MergeRow(float* y, const float* addend, int64_t width, float factor);
// to = y * factor + 0, so that no zero is negative; whether all are finite. `to` may be y.
bool FinishRow(const float* y, int64_t width, float factor, float* to);
// to = from + bias [columns], row by row, for matrices of one shape; whether all sums are finite.
// Any alignment and width.
bool AddBias(MatrixView<const float> from, const float* bias, MatrixView<float> to);
// to[c * rows + r] = from(r, c) + bias[c]; whether all are finite. Rows and columns are multiples
// of 4; any alignment.
bool AddBiasTransposed(MatrixView<const float> from, const float* bias, float* to);

// Whether all of [size] are finite; any alignment and size.
bool AllFinite(const float* values, int64_t size);

}  // namespace attend

#pragma once
/// A product of small matrices inside one core's cache.

#include <cstdint>

#include "train/kernels/vector_math.h"

namespace infeed::kernels {

inline constexpr std::int64_t kTileColumns = 32;

/// Columns, rounded up to what block_product writes.
[[nodiscard]] inline std::int64_t padded(std::int64_t columns) noexcept {
  return (columns + kTileColumns - 1) / kTileColumns * kTileColumns;
}

/// A matrix that is read one element at a time.
struct Strided {
  const float* data;
  std::int64_t row, column;  ///< strides
};
/// Rows of padded(columns) contiguous elements, `stride` apart.
template <class T>
struct Padded {
  T* data;
  std::int64_t stride;
};

using Vector [[gnu::may_alias]] = float __attribute__((vector_size(64), aligned(4)));

template <int kRows>
INFEED_INLINE void tile(float* c, std::int64_t c_stride, Strided a, const float* b, std::int64_t b_stride,
                        std::int64_t depth, bool add) noexcept {
  Vector sum[kRows][2] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector left = *reinterpret_cast<const Vector*>(b + k * b_stride);
    const Vector right = *reinterpret_cast<const Vector*>(b + k * b_stride + 16);
    for (int r = 0; r < kRows; ++r) {
      const float factor = a.data[r * a.row + k * a.column];
      sum[r][0] += factor * left;
      sum[r][1] += factor * right;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      auto* const to = reinterpret_cast<Vector*>(c + r * c_stride + 16 * half);
      *to = add ? *to + sum[r][half] : sum[r][half];
    }
  }
}

/// c[rows, columns] = a[rows, depth] b[depth, columns], or added to c. Writes padded(columns).
INFEED_INLINE void block_product(Padded<float> c, Strided a, Padded<const float> b, std::int64_t rows,
                                 std::int64_t columns, std::int64_t depth, bool add = false) noexcept {
  for (std::int64_t j = 0; j < columns; j += kTileColumns) {
    std::int64_t i = 0;
    const auto at = [&](std::int64_t row) { return Strided{a.data + row * a.row, a.row, a.column}; };
    for (; i + 6 <= rows; i += 6) tile<6>(c.data + i * c.stride + j, c.stride, at(i), b.data + j, b.stride, depth, add);
    for (; i < rows; ++i) tile<1>(c.data + i * c.stride + j, c.stride, at(i), b.data + j, b.stride, depth, add);
  }
}

}  // namespace infeed::kernels

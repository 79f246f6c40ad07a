#pragma once
/// matmul() over `multiply`, which host.h or device.cuh has for its place; included behind one of those.

#include <cstdint>

#include "device/kernels/anywhere.h"
#include "device/kernels/kernels.h"

namespace infeed::device {

/// Element (row, column) of a matrix, stored so or transposed.
struct MatrixOf {
  const float* x;
  std::int64_t row_stride, column_stride;
  INFEED_ANYWHERE float operator()(std::int64_t row, std::int64_t column) const {
    return x[row * row_stride + column * column_stride];
  }
};
INFEED_ANYWHERE inline MatrixOf matrix(const float* x, std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? MatrixOf{x, 1, rows} : MatrixOf{x, columns, 1};
}
template <class Where>
void matmul(const Where& where, const float* a, const float* b, float* c, infeed_matmul shape) {
  multiply(where, shape, c, matrix(a, shape.m, shape.k, shape.a_transposed != 0),
           matrix(b, shape.k, shape.n, shape.b_transposed != 0));
}

}  // namespace infeed::device

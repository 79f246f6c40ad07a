#pragma once
/// What the kernels along rows share. Their loops are vector instructions: `omp simd reduction` allows the compiler to
/// add in another order.

#include <algorithm>
#include <cstdint>

#include "train/kernels/parallel.h"
#include "train/kernels/vector_math.h"

namespace infeed::kernels {

/// Calls row(i) for each of `rows` rows of `n` elements, on several threads.
template <class Row>
void each_row(std::int64_t rows, std::int64_t n, Row&& row) {
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / 4 / std::max<std::int64_t>(n, 1)), [&](auto first, auto last) {
    for (auto i = first; i < last; ++i) row(i);
  });
}

INFEED_INLINE float largest_of(const float* x, std::int64_t n) noexcept {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

/// Sum of exp(x - largest).
INFEED_INLINE float sum_of_exp(const float* x, std::int64_t n, float largest) noexcept {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += fast::exp_of_negative(x[i] - largest);
  return sum;
}

/// The same; the terms go to `out`.
INFEED_INLINE float exp_and_sum(float* out, const float* x, std::int64_t n, float largest) noexcept {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += out[i] = fast::exp_of_negative(x[i] - largest);
  return sum;
}

}  // namespace infeed::kernels

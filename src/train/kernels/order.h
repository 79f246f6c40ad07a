#pragma once
/// Places of elements: by order, and by lists of offsets. Without recording.

#include <cstdint>
#include <span>
#include <vector>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// int64 indices of the first `k` elements along `dim` in order; equal ones keep theirs, NaN counts as largest.
[[nodiscard]] Tensor sorted_indices(const Tensor& x, int dim, std::int64_t k, bool descending);

/// Offsets in elements, from x's first, of every index of `shape` under `strides`, in C order.
[[nodiscard]] std::vector<std::int64_t> offsets_of(const Shape& shape, const Strides& strides);

/// out[i][r] = x[places[i] + inner[r]]; out is contiguous [places, inner] and of x's dtype.
void take(const Tensor& out, const Tensor& x, std::span<const std::int64_t> places,
          std::span<const std::int64_t> inner);

enum class PutMode : std::uint8_t { kSet, kAdd };
/// x[places[i] + inner[r]] = or += values[i][r], in order; values as `out` above.
void put(const Tensor& x, std::span<const std::int64_t> places, std::span<const std::int64_t> inner,
         const Tensor& values, PutMode mode);

}  // namespace infeed::kernels

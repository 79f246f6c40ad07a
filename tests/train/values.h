#pragma once
/// Tensors as plain values, and back.

#include <cstdint>
#include <vector>

#include "infeed/train/tensor/allocator.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// All elements in C order.
inline std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = tensor.detach().to(DType::kFloat64).contiguous();
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

/// Distinct values in (-1, 1), none of them within 0.02 of 0 (where ReLU has no derivative): for gradient checks.
inline Tensor spread_values(const Shape& shape, std::int64_t seed = 1) {
  Tensor tensor = Tensor::empty(shape);
  const std::int64_t n = tensor.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto rank = static_cast<float>((i * 7919 + seed * 104729) % 1009) / 1009.0f;  // 1009: prime
    tensor.data<float>()[i] = rank < 0.5f ? rank * 1.9f - 0.98f : (rank - 0.5f) * 1.9f + 0.03f;
  }
  return tensor;
}

/// Bytes of living CPU tensors.
inline std::size_t host_in_use() { return host_allocator().stats().in_use_bytes; }

}  // namespace infeed

#pragma once
/// Automatic mixed precision: which operands the operations of PyTorch's CPU lists convert.

#include "convert.h"

namespace infeed::python {

/// Of the calling thread.
struct AutocastState {
  bool enabled = false;
  DType dtype = DType::kBFloat16;
};
[[nodiscard]] AutocastState& autocast() noexcept;

/// `x` in autocast's dtype, for matrix products and convolutions.
[[nodiscard]] Tensor lowered(const Tensor& x);
/// `x` in float32, for losses.
[[nodiscard]] Tensor lifted(const Tensor& x);

}  // namespace infeed::python

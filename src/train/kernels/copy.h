#pragma once
/// Moving and converting elements.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// out = in, converted; in's shape must broadcast to out's. Memory must not overlap. Nothing happens on meta.
void copy(const Tensor& out, const Tensor& in);

/// out = value everywhere.
void fill(const Tensor& out, const Scalar& value);

}  // namespace infeed::kernels

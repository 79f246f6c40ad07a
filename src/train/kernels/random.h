#pragma once
/// Random fills, in C order whatever the strides: PyTorch's numbers for the same generator state.

#include "infeed/train/tensor/random.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

// Floating-point `out`. uniform: [low, high). normal: 16 numbers and more are made in blocks of 16, as PyTorch does.
void uniform(const Tensor& out, double low, double high, Generator& generator);
void normal(const Tensor& out, double mean, double std, Generator& generator);
/// Integers in [low, high), any dtype.
void integers(const Tensor& out, std::int64_t low, std::int64_t high, Generator& generator);
/// 1 with probability `p`, else 0, any dtype.
void bernoulli(const Tensor& out, double p, Generator& generator);

}  // namespace infeed::kernels

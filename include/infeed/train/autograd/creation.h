#pragma once
/// More ways to make tensors; Tensor's static members have empty, zeros, ones, full.

#include "infeed/base/export.h"
#include "infeed/train/tensor/random.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

// Unless options say otherwise, the *_like take the dtype, device and layout of `x`.
[[nodiscard]] INFEED_API Tensor empty_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] INFEED_API Tensor zeros_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] INFEED_API Tensor ones_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] INFEED_API Tensor full_like(const Tensor& x, const Scalar& value, const TensorOptions& options = {});

/// start, start + step, ... below `end`: int64, or the default dtype if a number is a float.
[[nodiscard]] INFEED_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                                       const TensorOptions& options = {});
[[nodiscard]] INFEED_API Tensor linspace(double start, double end, std::int64_t steps,
                                         const TensorOptions& options = {});
[[nodiscard]] INFEED_API Tensor eye(std::int64_t n, std::int64_t m = -1, const TensorOptions& options = {});
/// Shape [], of the dtype that `value` has in Python: int64, bool, or the default dtype.
[[nodiscard]] INFEED_API Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

// PyTorch's numbers for the same generator state; default_generator() unless one is given.
[[nodiscard]] INFEED_API Tensor rand(const Shape& shape, const TensorOptions& options = {},
                                     Generator* generator = nullptr);
[[nodiscard]] INFEED_API Tensor randn(const Shape& shape, const TensorOptions& options = {},
                                      Generator* generator = nullptr);
[[nodiscard]] INFEED_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                                        const TensorOptions& options = DType::kInt64, Generator* generator = nullptr);
[[nodiscard]] INFEED_API Tensor randperm(std::int64_t n, const TensorOptions& options = DType::kInt64,
                                         Generator* generator = nullptr);
[[nodiscard]] INFEED_API Tensor bernoulli(const Tensor& p, Generator* generator = nullptr);

// In place, not recorded beyond the write itself.
INFEED_API Tensor& uniform_(Tensor& x, double low = 0.0, double high = 1.0, Generator* generator = nullptr);
INFEED_API Tensor& normal_(Tensor& x, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);
INFEED_API Tensor& bernoulli_(Tensor& x, double p = 0.5, Generator* generator = nullptr);

}  // namespace infeed

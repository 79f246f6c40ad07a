#pragma once
/// Our tensors beside LibTorch's.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {

inline torch::ScalarType to_torch(DType dtype) {
  switch (dtype) {
    case DType::kBool: return torch::kBool;
    case DType::kUInt8: return torch::kUInt8;
    case DType::kInt8: return torch::kInt8;
    case DType::kInt16: return torch::kInt16;
    case DType::kInt32: return torch::kInt32;
    case DType::kInt64: return torch::kInt64;
    case DType::kFloat16: return torch::kFloat16;
    case DType::kBFloat16: return torch::kBFloat16;
    case DType::kFloat64: return torch::kFloat64;
    default: return torch::kFloat32;
  }
}

inline torch::Tensor to_torch(const Tensor& tensor) {
  const Tensor plain = tensor.detach().contiguous();
  return torch::from_blob(plain.data_ptr(), plain.shape().span(), to_torch(plain.dtype())).clone();
}

/// Relative error that a dtype's rounding allows an operation of a few steps.
inline double tolerance_of(DType dtype) {
  if (dtype == DType::kFloat64) return 1e-11;
  if (dtype == DType::kBFloat16) return 3e-2;
  if (dtype == DType::kFloat16) return 4e-3;
  return 2e-5;
}

inline void expect_close(const Tensor& ours, const torch::Tensor& theirs, const std::string& what,
                         double tolerance = 0.0) {
  ASSERT_TRUE(ours.defined() && theirs.defined()) << what;
  ASSERT_EQ(ours.shape(), Shape(std::span(theirs.sizes().data(), theirs.sizes().size()))) << what;
  ASSERT_EQ(to_torch(ours.dtype()), theirs.scalar_type()) << what;
  const double allowed = tolerance == 0.0 ? tolerance_of(ours.dtype()) : tolerance;
  const torch::Tensor mine = to_torch(ours).to(torch::kFloat64);
  const torch::Tensor expected = theirs.detach().to(torch::kFloat64);
  EXPECT_TRUE(torch::allclose(mine, expected, allowed, allowed, true))
      << what << " differs by up to " << (mine - expected).abs().max().item<double>() << "\n"
      << ours << "\n"
      << theirs;
}

}  // namespace infeed

#pragma once
/// Loops over dense float tensors, for tests of kernels.

#include <cstdint>
#include <initializer_list>

#include "infeed/base/dtype.h"
#include "infeed/plugin/kernel_abi.h"

namespace infeed::device {

template <class Op>
[[nodiscard]] infeed_operation code(Op op) {
  return static_cast<infeed_operation>(op);
}

[[nodiscard]] inline infeed_loop dense_loop(std::int64_t numel, float* out, std::initializer_list<const float*> in,
                                            double a = 1.0, double b = 0.0) {
  infeed_loop loop{.numel = numel, .ndim = 1, .size = {numel}, .a = a, .b = b};
  const auto operand = [](const float* data) {
    return infeed_operand{.data = const_cast<float*>(data),
                          .dtype = static_cast<std::int32_t>(DType::kFloat32),
                          .stride = {sizeof(float)}};
  };
  loop.operand[0] = operand(out);
  int k = 0;
  for (const float* data : in) loop.operand[++k] = operand(data);
  return loop;
}

}  // namespace infeed::device

#pragma once
/// Gradients against finite differences.

#include <functional>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

struct GradcheckOptions {
  double eps = 1e-6;  ///< step of the differences
  double atol = 1e-5;
  double rtol = 1e-3;
};

/// Compares backward of `f` with (f(x + eps) - f(x - eps)) / 2 eps for every element of every input that requires grad
/// (float64 is meant) and every element of the outputs. Returns what differs, or nothing.
[[nodiscard]] INFEED_API std::string gradcheck_failure(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
    const GradcheckOptions& options = {});
/// True, or a RuntimeError that says what differs.
INFEED_API bool gradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
/// The same for the gradients of `f`: their gradients, by differences of the first ones.
INFEED_API bool gradgradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                              const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace infeed

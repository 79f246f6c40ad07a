#pragma once
/// The engine: gradients of outputs become gradients of inputs.

#include <span>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;       ///< an input that no output depends on gets an undefined gradient, not an error
  bool materialize_grads = false;  ///< ... or zeros
};

/// d(outputs)/d(inputs), leaving every .grad alone. `grad_outputs`: one per output; an undefined one means 1 for a
/// scalar. Throws RuntimeError with PyTorch's texts.
[[nodiscard]] INFEED_API std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                                  const std::vector<Tensor>& grad_outputs = {},
                                                  const GradOptions& options = {});
[[nodiscard]] inline Tensor grad(const Tensor& output, const Tensor& input, const GradOptions& options = {}) {
  return grad({&output, 1}, {&input, 1}, {}, options).front();
}

/// Adds to the .grad of the leaves that `outputs` depend on; only of `inputs` if there are any.
INFEED_API void backward(std::span<const Tensor> outputs, const std::vector<Tensor>& grad_outputs = {},
                         const BackwardOptions& options = {}, std::span<const Tensor> inputs = {});

}  // namespace infeed

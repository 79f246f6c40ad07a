#include "infeed/train/nn/clip_grad.h"

#include <cmath>
#include <vector>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "train/tensor/check.h"

namespace infeed::nn {

static std::vector<Tensor> grads_of(std::span<const Tensor> parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters)
    if (parameter.grad().defined()) grads.push_back(parameter.grad());
  return grads;
}

Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  std::vector<Tensor> grads = grads_of(parameters);
  if (grads.empty()) return Tensor::zeros({});
  std::vector<Tensor> norms;
  for (const Tensor& grad : grads) norms.push_back(norm(grad, norm_type));
  Tensor total = norm(stack(norms), norm_type);
  require(
      !error_if_nonfinite || std::isfinite(total.item()),
      "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
      "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`",
      norm_type);
  const Tensor factor = clamp(Tensor(max_norm) / (total + 1e-6), std::nullopt, 1.0);
  for (Tensor& grad : grads) grad.mul_(factor);
  return total;
}

void clip_grad_value_(std::span<const Tensor> parameters, double clip_value) {
  const NoGradGuard no_grad;
  std::vector<Tensor> grads = grads_of(parameters);
  for (Tensor& grad : grads) grad.copy_(clamp(grad, -clip_value, clip_value));
}

}  // namespace infeed::nn

#include "infeed/train/optim/optimizer.h"

#include "infeed/train/autograd/grad_mode.h"

namespace infeed::optim {

Optimizer::~Optimizer() = default;

void Optimizer::zero_grad(bool set_to_none) {
  const NoGradGuard no_grad;
  for (Tensor& parameter : parameters()) {
    if (set_to_none) {
      parameter.set_grad({});
    } else if (Tensor grad = parameter.grad(); grad.defined()) {
      grad.zero_();
    }
  }
}

}  // namespace infeed::optim

// Steps over the lists that Python's optimizers collect from a group.

#include "binder.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "infeed/train/tensor/storage.h"

namespace infeed::python {
namespace {

using Tensors = std::vector<Tensor>;

// Adds one to a count in Python's state, and returns it: a float32 tensor without dimensions, unless a file brought another.
double counted(const Tensor& count) {
  Tensor step = count;
  if (step.dtype() != DType::kFloat32 || step.numel() != 1 || step.device() != DeviceId{})
    return step.add_(1.0).item<double>();
  step.storage()->bump_version();
  return *step.data<float>() += 1.0f;
}

Tensor at(const Tensors& tensors, std::size_t i) { return tensors.empty() ? Tensor() : tensors[i]; }

void sgd_step(const Tensors& params, const Tensors& grads, const std::vector<std::pair<Tensor, bool>>& buffers,
              double lr, double momentum, double dampening, double weight_decay, bool nesterov, bool maximize) {
  std::vector<optim::SgdRow> rows;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (buffers.empty())
      rows.push_back({params[i], grads[i], {}, false});
    else
      rows.push_back({params[i], grads[i], buffers[i].first, !buffers[i].second});
  }
  const nb::gil_scoped_release unlocked;
  optim::sgd_step(rows, {.lr = lr,
                         .momentum = momentum,
                         .dampening = dampening,
                         .weight_decay = weight_decay,
                         .nesterov = nesterov,
                         .maximize = maximize});
}

void adam_step(const Tensors& params, const Tensors& grads, const Tensors& means, const Tensors& squares,
               const Tensors& largest, const Tensors& steps, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool maximize, bool decoupled) {
  std::vector<optim::AdamRow> rows;
  for (std::size_t i = 0; i < params.size(); ++i)
    rows.push_back({params[i], grads[i], means[i], squares[i], at(largest, i), counted(steps[i])});
  const nb::gil_scoped_release unlocked;
  optim::adam_step(rows, {.lr = lr,
                          .beta1 = beta1,
                          .beta2 = beta2,
                          .eps = eps,
                          .weight_decay = weight_decay,
                          .amsgrad = !largest.empty(),
                          .decoupled = decoupled,
                          .maximize = maximize});
}

void adagrad_step(const Tensors& params, const Tensors& grads, const Tensors& sums, const Tensors& steps, double lr,
                  double lr_decay, double weight_decay, double eps, bool maximize) {
  std::vector<optim::AdagradRow> rows;
  for (std::size_t i = 0; i < params.size(); ++i) rows.push_back({params[i], grads[i], sums[i], counted(steps[i])});
  const nb::gil_scoped_release unlocked;
  optim::adagrad_step(rows,
                      {.lr = lr, .lr_decay = lr_decay, .weight_decay = weight_decay, .eps = eps, .maximize = maximize});
}

void rmsprop_step(const Tensors& params, const Tensors& grads, const Tensors& squares, const Tensors& buffers,
                  const Tensors& means, const Tensors& steps, double lr, double alpha, double eps, double weight_decay,
                  double momentum, bool maximize) {
  std::vector<optim::RmspropRow> rows;
  for (std::size_t i = 0; i < params.size(); ++i) {
    (void)counted(steps[i]);
    rows.push_back({params[i], grads[i], squares[i], at(buffers, i), at(means, i)});
  }
  const nb::gil_scoped_release unlocked;
  optim::rmsprop_step(rows, {.lr = lr,
                             .alpha = alpha,
                             .eps = eps,
                             .weight_decay = weight_decay,
                             .momentum = momentum,
                             .centered = !means.empty(),
                             .maximize = maximize});
}

}  // namespace

void bind_optim(const Binder& to) {
  to.module.def("_sgd_step", sgd_step);
  to.module.def("_adam_step", adam_step);
  to.module.def("_adagrad_step", adagrad_step);
  to.module.def("_rmsprop_step", rmsprop_step);
  to.module.def("_unscale", [](const Tensors& grads, double factor) { return optim::unscale(grads, factor); });
}

}  // namespace infeed::python

#pragma once
/// The optimizers' arithmetic over all parameters of a group: what the classes run, and bindings that keep the state
/// themselves. Formulas stand at the options. Tensors of a row have one shape; any floating-point dtypes.

#include <span>
#include <vector>

#include "infeed/train/optim/adagrad.h"
#include "infeed/train/optim/adam.h"
#include "infeed/train/optim/rmsprop.h"
#include "infeed/train/optim/sgd.h"

namespace infeed::optim {

struct SgdRow {
  Tensor param, grad;
  Tensor momentum_buffer;  ///< undefined where momentum is 0
  bool first = false;      ///< the buffer has no value yet: it takes the gradient
};
INFEED_API void sgd_step(std::span<const SgdRow> rows, const SGDOptions& options);

struct AdamRow {
  Tensor param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq;
  double step;  ///< this one's number, from 1
};
INFEED_API void adam_step(std::span<const AdamRow> rows, const AdamOptions& options);

struct AdagradRow {
  Tensor param, grad, sum;
  double step;
};
INFEED_API void adagrad_step(std::span<const AdagradRow> rows, const AdagradOptions& options);

struct RmspropRow {
  Tensor param, grad, square_avg, momentum_buffer, grad_avg;
};
INFEED_API void rmsprop_step(std::span<const RmspropRow> rows, const RMSpropOptions& options);

struct EmaRow {
  Tensor average, value;
};
/// average += (1 - decay) (value - average)
INFEED_API void ema_step(std::span<const EmaRow> rows, double decay);

/// grads *= factor; false if any of them is infinite or NaN (they are multiplied all the same).
[[nodiscard]] INFEED_API bool unscale(std::span<const Tensor> grads, double factor);

}  // namespace infeed::optim

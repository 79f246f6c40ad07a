#pragma once
/// What all optimizers share.

#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::optim {

/// Changes parameters from their gradients. Groups of parameters may have options of their own.
/// Threads: one at a time, never beside a backward() over the same parameters.
class INFEED_API Optimizer {
 public:
  virtual ~Optimizer();

  /// Takes one step. Parameters without a grad are left alone. Not recorded.
  virtual void step() = 0;

  /// Drops, or sets to 0, the grad of every parameter. Dropping saves a pass over memory.
  void zero_grad(bool set_to_none = true);

 protected:
  /// Every parameter of every group.
  [[nodiscard]] virtual std::vector<Tensor> parameters() const = 0;
};

}  // namespace infeed::optim

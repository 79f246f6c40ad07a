#pragma once
/// Averages of a model over its training.

#include <cstdint>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/named_tensor.h"

namespace infeed::optim {

/// An exponential moving average of tensors: update() after each optimizer.step(), swap() around a validation.
/// The first update copies; later ones do average += (1 - decay) (value - average) for floating-point tensors, and copy
/// the others. All in one pass, not recorded. Threads: one at a time.
class INFEED_API EMA {
 public:
  /// `values`: module.state_dict(), or a part of it. Copies them once.
  explicit EMA(std::vector<NamedTensor> values, double decay = 0.999);

  void update();
  /// Exchanges the elements of values and averages: call it again before the next update.
  void swap();
  [[nodiscard]] const std::vector<NamedTensor>& averages() const noexcept { return averages_; }
  [[nodiscard]] std::int64_t num_updates() const noexcept { return num_updates_; }

  [[nodiscard]] StateDict state_dict() const;
  /// Copies averages in. StateError for a missing name or another shape.
  void load_state_dict(const StateDict& saved);

 private:
  std::vector<NamedTensor> values_, averages_;
  double decay_;
  std::int64_t num_updates_ = 0;
};

}  // namespace infeed::optim

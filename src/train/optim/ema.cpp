#include "infeed/train/optim/ema.h"

#include <fmt/format.h>

#include <utility>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"

namespace infeed::optim {

EMA::EMA(std::vector<NamedTensor> values, double decay) : values_(std::move(values)), decay_(decay) {
  if (!(decay >= 0.0 && decay <= 1.0)) throw ConfigError(fmt::format("EMA: decay is {}, outside [0, 1].", decay));
  for (NamedTensor& value : values_) {
    value.tensor = value.tensor.detach();
    averages_.push_back({value.name, value.tensor.clone()});
  }
}

void EMA::update() {
  const NoGradGuard no_grad;
  std::vector<EmaRow> rows;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    Tensor &average = averages_[i].tensor, &value = values_[i].tensor;
    if (num_updates_ == 0 || !is_floating_point(value.dtype()))
      average.copy_(value);
    else
      rows.push_back({average, value});
  }
  ema_step(rows, decay_);
  ++num_updates_;
}

void EMA::swap() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Tensor kept = values_[i].tensor.clone();
    values_[i].tensor.copy_(averages_[i].tensor);
    averages_[i].tensor.copy_(kept);
  }
}

StateDict EMA::state_dict() const {
  StateDict saved(averages_);
  saved.state.set("num_updates", num_updates_);
  return saved;
}

void EMA::load_state_dict(const StateDict& saved) {
  const NoGradGuard no_grad;
  for (const auto& [name, average] : averages_) {
    const Tensor found = saved.find(name);
    if (!found.defined() || found.shape() != average.shape())
      throw StateError(fmt::format("EMA: the saved state has no '{}' of shape {}.", name, average.shape().str()));
  }
  num_updates_ = saved.state.get_int("num_updates");
  for (auto& [name, average] : averages_) average.copy_(saved.find(name));
}

}  // namespace infeed::optim

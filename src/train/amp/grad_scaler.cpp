#include "infeed/train/amp/grad_scaler.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/tensor/check.h"

namespace infeed::amp {

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options), scale_(options.init_scale) {
  require<ValueError>(options.growth_factor > 1.0, "The growth factor must be > 1.0.");
  require<ValueError>(options.backoff_factor < 1.0, "The backoff factor must be < 1.0.");
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!options_.enabled) return loss;
  is_used_ = true;
  return loss * Tensor::full({}, scale_, TensorOptions(DType::kFloat32, loss.device()));
}

GradScaler::Progress& GradScaler::of(optim::Optimizer& optimizer, const char* call) {
  require(is_used_,
          "Attempted {} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
          "earlier in the iteration.",
          call);
  return progress_[&optimizer];
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  Progress& progress = of(optimizer, "unscale_");
  require(!progress.unscaled, "unscale_() has already been called on this optimizer since the last update().");
  require(!progress.stepped, "unscale_() is being called after step().");
  std::vector<Tensor> grads;
  for (const Tensor& param : optimizer.parameters()) {
    if (!param.grad().defined()) continue;
    require<ValueError>(param.grad().dtype() != DType::kFloat16, "Attempting to unscale FP16 gradients.");
    grads.push_back(param.grad());
  }
  require(!grads.empty(), "No inf checks were recorded for this optimizer.");
  const NoGradGuard no_grad;
  progress.found_inf = !optim::unscale(grads, 1.0 / scale_);
  progress.unscaled = true;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (options_.enabled) {
    Progress& progress = of(optimizer, "step");
    require(!progress.stepped, "step() has already been called since the last update().");
    if (!progress.unscaled) unscale_(optimizer);
    progress.stepped = true;
    if (progress.found_inf) return false;
  }
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  require(!progress_.empty(), "No inf checks were recorded prior to update.");
  const bool found =
      std::any_of(progress_.begin(), progress_.end(), [](const auto& at) { return at.second.found_inf; });
  progress_.clear();
  if (found) {
    scale_ *= options_.backoff_factor;
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const double grown = scale_ * options_.growth_factor;
    if (grown < static_cast<double>(std::numeric_limits<float>::max())) scale_ = grown;
    growth_tracker_ = 0;
  }
}

void GradScaler::update(double new_scale) {
  scale_ = new_scale;
  progress_.clear();
}

State GradScaler::state_dict() const {
  State state;
  if (!options_.enabled) return state;
  state.set("scale", scale_);
  state.set("growth_factor", options_.growth_factor);
  state.set("backoff_factor", options_.backoff_factor);
  state.set("growth_interval", options_.growth_interval);
  state.set("_growth_tracker", growth_tracker_);
  return state;
}

void GradScaler::load_state_dict(const State& state) {
  if (!options_.enabled) return;
  require(!state.keys().empty(),
          "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.");
  scale_ = state.get_double("scale");
  options_.growth_factor = state.get_double("growth_factor");
  options_.backoff_factor = state.get_double("backoff_factor");
  options_.growth_interval = state.get_int("growth_interval");
  growth_tracker_ = state.get_int("_growth_tracker");
}

}  // namespace infeed::amp

#pragma once
/// GradScaler: keeps small gradients of half precision above zero.

#include <cstdint>
#include <unordered_map>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/train/optim/optimizer.h"

namespace infeed::amp {

/// PyTorch's meanings and defaults.
struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;           ///< above 1
  double backoff_factor = 0.5;          ///< below 1
  std::int64_t growth_interval = 2000;  ///< good steps in a row before the scale grows
  bool enabled = true;
};

/// scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update();
///
/// A step with an infinite or NaN gradient is left out, and the scale falls. Threads: one at a time.
/// Errors: RuntimeError with PyTorch's texts for calls out of order, ValueError for float16 gradients.
class INFEED_API GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  /// loss times the scale, in float32: a half would overflow.
  [[nodiscard]] Tensor scale(const Tensor& loss);
  /// Divides the gradients by the scale: before clipping, once between two updates.
  void unscale_(optim::Optimizer& optimizer);
  /// optimizer.step(), unless a gradient is infinite or NaN: then false.
  bool step(optim::Optimizer& optimizer);
  /// Adjusts the scale by what the steps since the last update() met.
  void update();
  /// Sets it.
  void update(double new_scale);

  [[nodiscard]] double get_scale() const noexcept { return options_.enabled ? scale_ : 1.0; }
  [[nodiscard]] bool is_enabled() const noexcept { return options_.enabled; }

  [[nodiscard]] State state_dict() const;
  void load_state_dict(const State& state);

 private:
  struct Progress {
    bool unscaled = false, stepped = false, found_inf = false;
  };
  Progress& of(optim::Optimizer& optimizer, const char* call);

  GradScalerOptions options_;
  double scale_;
  bool is_used_ = false;  // scale() was called
  std::int64_t growth_tracker_ = 0;
  std::unordered_map<const optim::Optimizer*, Progress> progress_;  // since the last update()
};

}  // namespace infeed::amp

#pragma once
/// Schedules of the learning rate: step() after each epoch (or each batch), behind optimizer.step().

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// The rate at `epoch`, counted from 0, of a group that began with `base`. All of the functions below are PyTorch's closed
/// forms; a function of your own is its LambdaLR.
using Schedule = std::function<double(double base, std::int64_t epoch)>;

[[nodiscard]] INFEED_API Schedule constant_lr(double factor = 1.0 / 3, std::int64_t total_iters = 5);
/// From start_factor to end_factor of the rate in total_iters epochs: a warm-up.
[[nodiscard]] INFEED_API Schedule linear_lr(double start_factor = 1.0 / 3, double end_factor = 1.0,
                                            std::int64_t total_iters = 5);
[[nodiscard]] INFEED_API Schedule step_lr(std::int64_t step_size, double gamma = 0.1);
[[nodiscard]] INFEED_API Schedule multi_step_lr(std::vector<std::int64_t> milestones, double gamma = 0.1);
[[nodiscard]] INFEED_API Schedule exponential_lr(double gamma);
/// Down to eta_min in t_max epochs along half a cosine, and up again in the next t_max.
[[nodiscard]] INFEED_API Schedule cosine_annealing_lr(std::int64_t t_max, double eta_min = 0.0);
/// schedules[i + 1] begins, at its epoch 0, at milestones[i]. ConfigError unless there is one schedule more.
[[nodiscard]] INFEED_API Schedule sequential_lr(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones);

struct OneCycleOptions {
  double max_lr = 0.0;            ///< whatever a group began with
  std::int64_t total_steps = 0;   ///< of the training: step() after each batch. A step beyond is a ValueError
  double pct_start = 0.3;         ///< the part of them that rises
  bool cosine = true;             ///< or straight lines
  double base_momentum = 0.85;    ///< at the highest rate
  double max_momentum = 0.95;     ///< at the lowest
  double div_factor = 25.0;       ///< max_lr over the first rate
  double final_div_factor = 1e4;  ///< the first rate over the last
  bool three_phase = false;       ///< fall to the first rate as fast as it rose, then to the last
};
/// Up to max_lr and down to almost nothing within one training, and momentum (Adam's beta1) the other way round.
[[nodiscard]] INFEED_API Schedule one_cycle_lr(const OneCycleOptions& options);
[[nodiscard]] INFEED_API Schedule one_cycle_momentum(const OneCycleOptions& options);

/// Sets the rate of every group of an optimizer, which must live as long. Unlike PyTorch's, it computes each rate from
/// the first one: what the user wrote into `lr` in between is replaced. Threads: as the optimizer.
class INFEED_API LRScheduler {
 public:
  /// Sets the rate of epoch 0. `momentum`: what becomes of momentum, if anything.
  LRScheduler(Optimizer& optimizer, Schedule rate, Schedule momentum = {});

  void step();
  [[nodiscard]] std::int64_t last_epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::vector<double> get_last_lr() const;

  [[nodiscard]] State state_dict() const;
  /// Takes up epoch and first rates, and sets the rates. StateError for another number of groups.
  void load_state_dict(const State& state);

 private:
  void apply();

  Optimizer& optimizer_;
  Schedule rate_, momentum_;
  std::vector<double> bases_;
  std::int64_t epoch_ = 0;
};

struct PlateauOptions {
  bool maximize = false;  ///< mode "max"
  double factor = 0.1;
  std::int64_t patience = 10;  ///< epochs without improvement that are borne
  double threshold = 1e-4;     ///< less is no improvement
  bool relative = true;        ///< threshold_mode "rel"
  std::int64_t cooldown = 0;   ///< epochs after a fall that do not count
  double min_lr = 0.0;
  double eps = 1e-8;  ///< smaller falls are left out
};

/// Multiplies the rates by `factor` where a metric stops improving.
class INFEED_API ReduceLROnPlateau {
 public:
  ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double metric);
  [[nodiscard]] double best() const noexcept { return best_; }

  [[nodiscard]] State state_dict() const;
  void load_state_dict(const State& state);

 private:
  [[nodiscard]] bool is_better(double metric) const noexcept;

  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  std::int64_t num_bad_epochs_ = 0, cooldown_counter_ = 0;
};

}  // namespace infeed::optim

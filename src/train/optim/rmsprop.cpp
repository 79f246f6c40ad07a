#include "infeed/train/optim/rmsprop.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

static void check_options(const RMSpropOptions& o) {
  check_range(o.lr >= 0.0, "RMSprop", "lr", o.lr);
  check_range(o.alpha >= 0.0, "RMSprop", "alpha", o.alpha);
  check_range(o.eps >= 0.0, "RMSprop", "eps", o.eps);
  check_range(o.momentum >= 0.0, "RMSprop", "momentum", o.momentum);
  check_range(o.weight_decay >= 0.0, "RMSprop", "weight_decay", o.weight_decay);
}

static constexpr std::string_view name_of(const RMSpropOptions&) { return "RMSprop"; }

static void each_option(RMSpropOptions& o, auto&& visit) {
  visit("lr", o.lr);
  visit("alpha", o.alpha);
  visit("eps", o.eps);
  visit("weight_decay", o.weight_decay);
  visit("momentum", o.momentum);
  visit("centered", o.centered);
  visit("maximize", o.maximize);
}

static void each_state(RMSpropState& s, auto&& visit) {
  visit("step", s.step);
  visit("square_avg", s.square_avg);
  visit("momentum_buffer", s.momentum_buffer);
  visit("grad_avg", s.grad_avg);
}

template class GroupedOptimizer<RMSpropOptions, RMSpropState>;

void RMSprop::step() {
  const NoGradGuard no_grad;
  const auto zeros_where = [](bool wanted, const Tensor& param, Tensor& slot) {
    if (wanted && !slot.defined()) slot = Tensor::empty_like(param).zero_();
    return wanted ? slot : Tensor();
  };
  for (const Group& group : groups_) {
    std::vector<RmspropRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      RMSpropState& state = state_[param.id()];
      ++state.step;
      rows.push_back({param, param.grad(), zeros_where(true, param, state.square_avg),
                      zeros_where(group.options.momentum > 0.0, param, state.momentum_buffer),
                      zeros_where(group.options.centered, param, state.grad_avg)});
    }
    rmsprop_step(rows, group.options);
  }
}

}  // namespace infeed::optim

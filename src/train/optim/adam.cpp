#include "infeed/train/optim/adam.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

static void check_options(const AdamOptions& o) {
  check_range(o.lr >= 0.0, "Adam", "lr", o.lr);
  check_range(o.beta1 >= 0.0 && o.beta1 < 1.0, "Adam", "beta1", o.beta1);
  check_range(o.beta2 >= 0.0 && o.beta2 < 1.0, "Adam", "beta2", o.beta2);
  check_range(o.eps >= 0.0, "Adam", "eps", o.eps);
  check_range(o.weight_decay >= 0.0, "Adam", "weight_decay", o.weight_decay);
}

static constexpr std::string_view name_of(const AdamOptions&) { return "Adam"; }

static void each_option(AdamOptions& o, auto&& visit) {
  visit("lr", o.lr);
  visit("beta1", o.beta1);
  visit("beta2", o.beta2);
  visit("eps", o.eps);
  visit("weight_decay", o.weight_decay);
  visit("amsgrad", o.amsgrad);
  visit("decoupled", o.decoupled);
  visit("maximize", o.maximize);
}

static void each_state(AdamState& s, auto&& visit) {
  visit("step", s.step);
  visit("exp_avg", s.exp_avg);
  visit("exp_avg_sq", s.exp_avg_sq);
  visit("max_exp_avg_sq", s.max_exp_avg_sq);
}

template class GroupedOptimizer<AdamOptions, AdamState>;

void Adam::step() {
  const NoGradGuard no_grad;
  for (const Group& group : groups_) {
    std::vector<AdamRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      AdamState& state = state_[param.id()];
      if (!state.exp_avg.defined()) {
        state.exp_avg = Tensor::empty_like(param).zero_();
        state.exp_avg_sq = Tensor::empty_like(param).zero_();
      }
      if (group.options.amsgrad && !state.max_exp_avg_sq.defined())
        state.max_exp_avg_sq = Tensor::empty_like(param).zero_();
      rows.push_back({param, param.grad(), state.exp_avg, state.exp_avg_sq,
                      group.options.amsgrad ? state.max_exp_avg_sq : Tensor(), ++state.step});
    }
    adam_step(rows, group.options);
  }
}

}  // namespace infeed::optim

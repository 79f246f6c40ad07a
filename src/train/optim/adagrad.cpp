#include "infeed/train/optim/adagrad.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

static void check_options(const AdagradOptions& o) {
  check_range(o.lr >= 0.0, "Adagrad", "lr", o.lr);
  check_range(o.lr_decay >= 0.0, "Adagrad", "lr_decay", o.lr_decay);
  check_range(o.weight_decay >= 0.0, "Adagrad", "weight_decay", o.weight_decay);
  check_range(o.eps >= 0.0, "Adagrad", "eps", o.eps);
}

static constexpr std::string_view name_of(const AdagradOptions&) { return "Adagrad"; }

static void each_option(AdagradOptions& o, auto&& visit) {
  visit("lr", o.lr);
  visit("lr_decay", o.lr_decay);
  visit("weight_decay", o.weight_decay);
  visit("initial_accumulator_value", o.initial_accumulator_value);
  visit("eps", o.eps);
  visit("maximize", o.maximize);
}

static void each_state(AdagradState& s, auto&& visit) {
  visit("step", s.step);
  visit("sum", s.sum);
}

template class GroupedOptimizer<AdagradOptions, AdagradState>;

void Adagrad::step() {
  const NoGradGuard no_grad;
  for (const Group& group : groups_) {
    std::vector<AdagradRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      AdagradState& state = state_[param.id()];
      if (!state.sum.defined()) state.sum = Tensor::empty_like(param).fill_(group.options.initial_accumulator_value);
      rows.push_back({param, param.grad(), state.sum, ++state.step});
    }
    adagrad_step(rows, group.options);
  }
}

}  // namespace infeed::optim

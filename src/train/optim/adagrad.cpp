#include "infeed/train/optim/adagrad.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

Adagrad::Adagrad(std::vector<Tensor> params, const AdagradOptions& options)
    : Adagrad(std::vector<Group>{{std::move(params), options}}) {}

Adagrad::Adagrad(std::vector<Group> groups) {
  if (groups.empty()) throw ConfigError("Adagrad: no group of parameters is given.");
  for (Group& group : groups) add_param_group(std::move(group));
}

void Adagrad::add_param_group(Group group) {
  const AdagradOptions& o = group.options;
  check_range(o.lr >= 0.0, "Adagrad", "lr", o.lr);
  check_range(o.lr_decay >= 0.0, "Adagrad", "lr_decay", o.lr_decay);
  check_range(o.weight_decay >= 0.0, "Adagrad", "weight_decay", o.weight_decay);
  check_range(o.eps >= 0.0, "Adagrad", "eps", o.eps);
  check_group("Adagrad", groups_, group);
  groups_.push_back(std::move(group));
}

std::vector<Tensor> Adagrad::parameters() const { return parameters_of(groups_); }

void Adagrad::step() {
  const NoGradGuard no_grad;
  for (const Group& group : groups_) {
    std::vector<AdagradRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      State& state = state_[param.id()];
      if (!state.sum.defined()) state.sum = Tensor::empty_like(param).fill_(group.options.initial_accumulator_value);
      rows.push_back({param, param.grad(), state.sum, ++state.step});
    }
    adagrad_step(rows, group.options);
  }
}

}  // namespace infeed::optim

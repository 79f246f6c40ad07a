#include "infeed/train/optim/sgd.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

static void check_options(const SGDOptions& o) {
  check_range(o.lr >= 0.0, "SGD", "lr", o.lr);
  check_range(o.momentum >= 0.0, "SGD", "momentum", o.momentum);
  check_range(o.weight_decay >= 0.0, "SGD", "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum <= 0.0 || o.dampening != 0.0))
    throw ConfigError(
        fmt::format("SGD: nesterov needs momentum ({}) above 0 and dampening ({}) of 0.", o.momentum, o.dampening));
}

static constexpr std::string_view name_of(const SGDOptions&) { return "SGD"; }

static void each_option(SGDOptions& o, auto&& visit) {
  visit("lr", o.lr);
  visit("momentum", o.momentum);
  visit("dampening", o.dampening);
  visit("weight_decay", o.weight_decay);
  visit("nesterov", o.nesterov);
  visit("maximize", o.maximize);
}

static void each_state(SGDState& s, auto&& visit) { visit("momentum_buffer", s.momentum_buffer); }

template class GroupedOptimizer<SGDOptions, SGDState>;

void SGD::step() {
  const NoGradGuard no_grad;
  for (const Group& group : groups_) {
    std::vector<SgdRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      SgdRow& row = rows.emplace_back(SgdRow{param, param.grad(), {}, false});
      if (group.options.momentum == 0.0) continue;
      Tensor& buffer = state_[param.id()].momentum_buffer;
      row.first = !buffer.defined();
      if (row.first) buffer = Tensor::empty_like(param);
      row.momentum_buffer = buffer;
    }
    sgd_step(rows, group.options);
  }
}

}  // namespace infeed::optim

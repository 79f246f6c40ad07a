#include "infeed/train/optim/sgd.h"

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/optim/groups.h"

namespace infeed::optim {

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(std::vector<Group>{{std::move(params), options}}) {}

SGD::SGD(std::vector<Group> groups) {
  if (groups.empty()) throw ConfigError("SGD: no group of parameters is given.");
  for (Group& group : groups) add_param_group(std::move(group));
}

void SGD::add_param_group(Group group) {
  const SGDOptions& o = group.options;
  check_range(o.lr >= 0.0, "SGD", "lr", o.lr);
  check_range(o.momentum >= 0.0, "SGD", "momentum", o.momentum);
  check_range(o.weight_decay >= 0.0, "SGD", "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum <= 0.0 || o.dampening != 0.0))
    throw ConfigError(
        fmt::format("SGD: nesterov needs momentum ({}) above 0 and dampening ({}) of 0.", o.momentum, o.dampening));
  check_group("SGD", groups_, group);
  groups_.push_back(std::move(group));
}

std::vector<Tensor> SGD::parameters() const { return parameters_of(groups_); }

void SGD::step() {
  const NoGradGuard no_grad;
  for (const Group& group : groups_) {
    std::vector<SgdRow> rows;
    for (const Tensor& param : group.params) {
      if (!param.grad().defined()) continue;
      SgdRow& row = rows.emplace_back(SgdRow{param, param.grad(), {}, false});
      if (group.options.momentum == 0.0) continue;
      Tensor& buffer = buffers_[param.id()];
      row.first = !buffer.defined();
      if (row.first) buffer = Tensor::empty_like(param);
      row.momentum_buffer = buffer;
    }
    sgd_step(rows, group.options);
  }
}

}  // namespace infeed::optim

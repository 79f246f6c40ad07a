#include "infeed/train/optim/sgd.h"

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/tensor/storage.h"
#include "train/kernels/sgd.h"

namespace infeed::optim {

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(std::vector<Group>{{std::move(params), options}}) {}

SGD::SGD(std::vector<Group> groups) : groups_(std::move(groups)) {
  check();
  for (const Group& group : groups_) buffers_.emplace_back(group.params.size());
}

void SGD::check() const {
  for (const auto& [params, options] : groups_) {
    if (params.empty()) throw ConfigError("SGD: a group has no parameters; pass module.parameters().");
    if (!(options.lr >= 0.0 && options.momentum >= 0.0 && options.weight_decay >= 0.0))
      throw ConfigError(fmt::format("SGD: lr ({}), momentum ({}) and weight_decay ({}) must not be negative.",
                                    options.lr, options.momentum, options.weight_decay));
    if (options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
      throw ConfigError(fmt::format("SGD: nesterov needs momentum ({}) above 0 and dampening ({}) of 0.",
                                    options.momentum, options.dampening));
    for (const Tensor& param : params) {
      if (!param.is_leaf() || !param.requires_grad() || param.dtype() != DType::kFloat32)
        throw ConfigError(
            fmt::format("SGD: a parameter of shape {} and dtype {} is not a float32 leaf that requires grad.",
                        param.shape().str(), to_string(param.dtype())));
    }
  }
}

std::vector<Tensor> SGD::parameters() const {
  std::vector<Tensor> all;
  for (const Group& group : groups_) all.insert(all.end(), group.params.begin(), group.params.end());
  return all;
}

void SGD::step() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    for (std::size_t j = 0; j < group.params.size(); ++j) step_parameter(group, group.params[j], buffers_[i][j]);
  }
}

void SGD::step_parameter(const Group& group, const Tensor& param, Tensor& buffer) {
  const Tensor& grad = param.grad();
  if (!grad.defined()) return;
  const SGDOptions& o = group.options;
  const bool first = o.momentum != 0.0 && !buffer.defined();
  if (first) buffer = Tensor::empty_like(param);
  kernels::sgd_step(param, grad, o.momentum != 0.0 ? buffer : Tensor(),
                    {.lr = static_cast<float>(o.lr),
                     .momentum = static_cast<float>(o.momentum),
                     .dampening = static_cast<float>(o.dampening),
                     .weight_decay = static_cast<float>(o.weight_decay),
                     .nesterov = o.nesterov,
                     .first = first,
                     .maximize = o.maximize});
  param.storage()->bump_version();
}

}  // namespace infeed::optim

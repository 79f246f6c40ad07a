#include "train/optim/on_device.h"

#include <cmath>

#include "train/kernels/on_device.h"

namespace infeed::optim {
namespace {

// As one contiguous range, whatever the layout: rows of FlatRows lie alike and dense.
template <std::size_t N>
kernels::Row<N> flattened(const kernels::Row<N>& row) {
  kernels::Row<N> flat;
  for (std::size_t k = 0; k < N; ++k)
    if (row[k].defined()) flat[k] = alias(row[k], 0, {row[k].numel()}, {1});
  return flat;
}

}  // namespace

void step_on_device(std::span<const kernels::Row<3>> rows, std::span<const SgdRow> from, const SGDOptions& o) {
  const kernels::FlatRows<3> flat(rows);
  for (std::size_t i = 0; i < flat.rows.size(); ++i) {
    const auto [param, grad, buffer] = flattened(flat.rows[i]);
    const infeed_sgd numbers{.lr = static_cast<float>(o.lr),
                             .momentum = buffer.defined() ? static_cast<float>(o.momentum) : 0.0F,
                             .dampening = static_cast<float>(o.dampening),
                             .weight_decay = static_cast<float>(o.weight_decay),
                             .nesterov = o.nesterov ? 1 : 0,
                             .maximize = o.maximize ? 1 : 0,
                             .first = from[i].first ? 1 : 0};
    const kernels::on_device::Launch launch("SGD::step", param);
    launch(&infeed_kernel_api::sgd_step, numbers, launch.at(param), launch.at<const float>(grad), launch.at(buffer),
           param.numel());
  }
  flat.write_back(rows);
}

void step_on_device(std::span<const kernels::Row<5>> rows, std::span<const AdamRow> from, const AdamOptions& o) {
  const kernels::FlatRows<5> flat(rows);
  for (std::size_t i = 0; i < flat.rows.size(); ++i) {
    const auto [param, grad, mean, square, largest] = flattened(flat.rows[i]);
    const infeed_adam numbers{.lr = static_cast<float>(o.lr),
                              .beta1 = static_cast<float>(o.beta1),
                              .beta2 = static_cast<float>(o.beta2),
                              .eps = static_cast<float>(o.eps),
                              .weight_decay = static_cast<float>(o.weight_decay),
                              .decoupled = o.decoupled ? 1 : 0,
                              .maximize = o.maximize ? 1 : 0,
                              .correction1 = static_cast<float>(1.0 - std::pow(o.beta1, from[i].step)),
                              .root_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(o.beta2, from[i].step)))};
    const kernels::on_device::Launch launch("Adam::step", param);
    launch(&infeed_kernel_api::adam_step, numbers, launch.at(param), launch.at<const float>(grad), launch.at(mean),
           launch.at(square), launch.at(largest), param.numel());
  }
  flat.write_back(rows);
}

}  // namespace infeed::optim

// Tensor's members that belong to differentiation, and the in-place ones.

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/kernels/copy.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

void check_in_place(std::string_view op, const Tensor& target, const Tensor& argument = {}) {
  const bool recorded = target.requires_grad() || (argument.defined() && argument.requires_grad());
  if (grad_enabled() && recorded)
    throw ConfigError(
        fmt::format("{} on a tensor of shape {} would change the graph: wrap it in a NoGradGuard, or use the "
                    "form that returns a new tensor.",
                    op, target.shape().str()));
}

void check_broadcasts_to(std::string_view op, const Tensor& target, const Tensor& argument) {
  if (broadcast_shape(op, target.shape(), argument.shape()) != target.shape())
    throw ConfigError(
        fmt::format("{}: shape {} does not broadcast to {}.", op, argument.shape().str(), target.shape().str()));
}

// An in-place operation reads its argument while it writes: a view of the same storage must be copied first.
Tensor apart_from(const Tensor& target, const Tensor& argument) {
  const bool shares = target.storage() == argument.storage();
  const bool same_elements = target.data_ptr() == argument.data_ptr() && target.strides() == argument.strides() &&
                             target.shape() == argument.shape();
  return shares && !same_elements ? argument.detach().clone() : argument;
}

}  // namespace

bool Tensor::requires_grad() const { return impl().requires_grad; }
bool Tensor::is_leaf() const { return impl().grad_fn == nullptr; }
const Tensor& Tensor::grad() const { return impl().grad; }
const std::shared_ptr<Node>& Tensor::grad_fn() const { return impl().grad_fn; }

void Tensor::set_grad(Tensor grad) {
  if (grad.defined() && (grad.shape() != shape() || grad.dtype() != dtype()))
    throw ConfigError(fmt::format("set_grad: the gradient is {}{}, the tensor is {}{}.", to_string(grad.dtype()),
                                  grad.shape().str(), to_string(dtype()), shape().str()));
  impl().grad = std::move(grad);
}

Tensor& Tensor::set_requires_grad(bool value) {
  if (!is_leaf()) throw ConfigError("set_requires_grad: only a leaf can change it; detach() this result first.");
  if (value && !is_floating_point(dtype()))
    throw ConfigError(fmt::format("set_requires_grad: only floating-point tensors have gradients, this one is {}.",
                                  to_string(dtype())));
  impl().requires_grad = value;
  return *this;
}

Tensor Tensor::detach() const { return alias(*this, 0, shape(), strides()); }

Tensor& Tensor::zero_() { return fill_(0.0); }

Tensor& Tensor::fill_(double value) {
  check_in_place("fill_", *this);
  kernels::fill(*this, value);
  storage()->bump_version();
  return *this;
}

Tensor& Tensor::copy_(const Tensor& source) {
  check_in_place("copy_", *this, source);
  check_broadcasts_to("copy_", *this, source);
  const Tensor from = apart_from(*this, source);
  if (from.data_ptr() != data_ptr() || from.dtype() != dtype()) kernels::copy(*this, from);
  storage()->bump_version();
  return *this;
}

Tensor& Tensor::add_(const Tensor& other, double alpha) {
  check_in_place("add_", *this, other);
  kernels::binary_into(kernels::BinaryOp::kAdd, *this, apart_from(*this, other), alpha);
  storage()->bump_version();
  return *this;
}

Tensor& Tensor::mul_(const Tensor& other) {
  check_in_place("mul_", *this, other);
  kernels::binary_into(kernels::BinaryOp::kMul, *this, apart_from(*this, other));
  storage()->bump_version();
  return *this;
}

Tensor& Tensor::mul_(double factor) {
  check_in_place("mul_", *this);
  kernels::affine(*this, *this, factor, 0.0);
  storage()->bump_version();
  return *this;
}

}  // namespace infeed

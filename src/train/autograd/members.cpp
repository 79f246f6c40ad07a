// Tensor's members that belong to differentiation.

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "train/autograd/extras.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {

bool Tensor::requires_grad() const {
  const TensorImpl& t = impl();
  return t.requires_grad || (t.view != nullptr && t.view->base.requires_grad());
}

bool Tensor::is_leaf() const { return !requires_grad() || grad_fn() == nullptr; }
const Tensor& Tensor::grad() const { return impl().grad; }
int Tensor::output_nr() const { return impl().output_nr; }
bool Tensor::retains_grad() const { return impl().retains_grad; }
bool Tensor::is_view() const { return impl().view != nullptr; }
Tensor Tensor::base() const { return impl().view == nullptr ? Tensor() : impl().view->base; }

void Tensor::set_grad(Tensor grad) {
  if (grad.defined()) {
    require(!grad.is_same(*this), "can't assign Variable as its own grad");
    require(grad.dtype() == dtype(), "assigned grad has data of a different type");
    require(grad.device() == device(), "assigned grad has data located on a different device");
    require(grad.shape() == shape(), "assigned grad has data of a different size");
  }
  impl().grad = std::move(grad);
}

Tensor& Tensor::set_requires_grad(bool value) {
  require(
      value || is_leaf(),
      "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
      "that doesn't require differentiation use var_no_grad = var.detach().");
  require(!value || is_floating_point(dtype()), "only Tensors of floating point dtype can require gradients");
  require(!value || !is_inference() || is_inference_mode_enabled(),
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (is_leaf()) impl().requires_grad = value;
  return *this;
}

void Tensor::retain_grad() {
  require(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf() || impl().retains_grad) return;
  grad_fn()->retain_grad(impl().output_nr, impl_);
  impl().retains_grad = true;
}

HookHandle Tensor::register_hook(TensorHook hook) {
  require(requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  if (!is_leaf()) return grad_fn()->register_tensor_hook(impl().output_nr, std::move(hook));
  return add_hook(impl().hooks, std::move(hook));
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) {
  require(requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  require(is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  return add_hook(impl().post_hooks, [hook = std::move(hook)](const Tensor& leaf) {
    hook(leaf);
    return Tensor();
  });
}

Tensor Tensor::detach() const {
  Tensor out = alias(*this, 0, shape(), strides());
  out.impl().inference = impl().inference;
  return out;
}

Tensor& Tensor::detach_() {
  require(!is_view(), "Can't detach views in-place. Use detach() instead.");
  TensorImpl& t = impl();
  t.grad_fn = nullptr;
  t.requires_grad = false;
  t.output_nr = 0;
  return *this;
}

// A storage of its own over the same memory: writes through it do not count here.
Tensor Tensor::variable_data() const {
  const TensorImpl& t = impl();
  const Storage& from = *t.storage;
  auto storage = is_meta() ? t.storage
                 : from.memory() == nullptr
                     ? std::make_shared<Storage>(from.data(), from.nbytes(), t.storage)
                     : std::make_shared<Storage>(from.address(), from.nbytes(), t.storage, from.memory());
  return make_view(std::move(storage), t.offset_bytes, t.shape, t.strides, t.dtype);
}

void Tensor::set_data(const Tensor& data) {
  TensorImpl& t = impl();
  const TensorImpl& from = data.impl();
  require(!t.requires_grad || is_floating_point(from.dtype),
          "data set to a tensor that requires gradients must be floating point or complex dtype");
  t.storage = from.storage;
  t.offset_bytes = from.offset_bytes;
  t.shape = from.shape;
  t.strides = from.strides;
  t.dtype = from.dtype;
  t.accumulator.reset();  // it expects gradients of the old shape
}

}  // namespace infeed

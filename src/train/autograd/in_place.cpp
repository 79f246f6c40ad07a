// Writes in place: what is allowed, and what they do to the graph.

#include "infeed/train/autograd/in_place.h"

#include "infeed/train/autograd/creation.h"
#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using kernels::BinaryOp;

void check_view(const Tensor& self) {
  const ViewOf& view = *self.impl().view;
  if (!view.base.requires_grad()) return;
  require(view.base.grad_fn() != nullptr,
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  require(
      view.kind != ViewKind::kNoGrad,
      "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
      "case "
      "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
      "inplace "
      "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
      "the inplace to be tracked).");
  require(view.kind != ViewKind::kMultiOutput,
          "Output {} of {} is a view and is being modified inplace. This view is the output of a function that returns "
          "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
          "inplace operation by an out-of-place one.",
          self.output_nr(), self.grad_fn() == nullptr ? "a function" : self.grad_fn()->name());
}

// The gradient of the base after a part of it was replaced: nothing for the old part, all for what is there now.
void rebase_base(Tensor& base, const Tensor& part, const Tensor& result) {
  const Shape shape = part.shape();
  const Strides strides = part.strides();
  const std::int64_t offset = part.storage_offset() - base.storage_offset();
  const auto slice_of = [=](const Tensor& whole) {
    return whole.as_strided(shape, strides, whole.storage_offset() + offset);
  };
  const Tensor like = base.detach();
  auto formula = [=](const Pass& p) {
    Tensor grad = p.g();  // to lie as the base does
    if (grad_enabled()) {
      require(like.is_contiguous(), "create_graph through a write into a part of a tensor that is not contiguous");
      grad = grad.clone(MemoryFormat::kContiguous);
    } else {
      grad = Tensor::empty_strided(like.shape(), like.strides(), like.options());
      kernels::copy(grad, p.g());
    }
    if (p.needs(1)) p.give(1, slice_of(grad).clone(MemoryFormat::kContiguous));
    if (!p.needs(0)) return;
    slice_of(grad).zero_();
    p.give(0, grad);
  };
  const auto node = std::make_shared<FormulaNode<decltype(formula)>>("CopySlices", formula);
  node->set_inputs({base, result});
  base.impl().requires_grad = true;
  node->add_output(base);
}

// Retained gradients follow the tensor to its new node.
void link(Tensor& self, const std::shared_ptr<Node>& node, int output_nr) {
  TensorImpl& impl = self.impl();
  impl.grad_fn = node;
  impl.output_nr = output_nr;
  impl.requires_grad = true;
  if (!impl.retains_grad) return;
  impl.retains_grad = false;
  self.retain_grad();
}

DType checked_result(const Tensor& self, const Tensor& other, DType dtype) {
  require(can_cast(dtype, self.dtype()), "result type {} can't be cast to the desired output type {}", dtype,
          self.dtype());
  const Shape shape = self.shape() == other.shape() ? self.shape() : broadcast_shape(self.shape(), other.shape());
  require(shape == self.shape(), "output with shape {} doesn't match the broadcast shape {}", self.shape(), shape);
  return dtype;
}

template <class Op>
Tensor& arithmetic(Tensor& self, const Tensor& other, BinaryOp kernel, const Scalar& alpha, Op&& op) {
  check_in_place(self);
  if (needs_graph({self, other})) {
    const Tensor before = before_write(self);
    write_result(self, op(before, other.is_same(self) ? before : other));
    return self;
  }
  check_overlap(self, other);
  (void)common_device(self, other);
  DType dtype = result_type(self, other);
  if (kernel == BinaryOp::kDiv) dtype = real_dtype(dtype);
  kernels::binary(kernel, self, self, other, checked_result(self, other, dtype), alpha.to_double());
  self.storage()->bump_version();
  return self;
}

}  // namespace

void check_in_place(const Tensor& self) {
  const TensorImpl& impl = self.impl();
  require(!impl.inference || is_inference_mode_enabled(),
          "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
          "normal tensor "
          "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
  require(!overlaps_itself(impl.shape, impl.strides),
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please "
          "clone() the tensor before performing the operation.");
  if (!grad_enabled()) return;
  if (impl.view != nullptr) return check_view(self);
  require(!impl.requires_grad || impl.grad_fn != nullptr,
          "a leaf Variable that requires grad is being used in an in-place operation.");
}

void check_overlap(const Tensor& self, const Tensor& input) {
  if (self.storage() != input.storage() || self.is_same(input)) return;
  if (self.storage_offset() == input.storage_offset() && self.shape() == input.shape() &&
      self.strides() == input.strides())
    return;
  const auto range = [](const Tensor& t) {
    std::int64_t last = 0;
    for (int dim = 0; dim < t.ndim(); ++dim) last += (t.shape()[dim] - 1) * t.strides()[dim];
    return std::pair(t.storage_offset(), t.storage_offset() + (t.numel() == 0 ? -1 : last));
  };
  const auto [first_a, last_a] = range(self);
  const auto [first_b, last_b] = range(input);
  const bool dense = is_dense(self.shape(), self.strides()) && is_dense(input.shape(), input.strides());
  require(last_a < first_b || last_b < first_a || !dense,
          "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
          "location. Please clone() the tensor before performing the operation.");
}

Tensor before_write(const Tensor& self) {
  Tensor copy = Tensor::empty_like(self);
  kernels::copy(copy, self);
  const Edge edge = gradient_edge(self);
  if (edge.node != nullptr) {
    copy.impl().grad_fn = edge.node;
    copy.impl().output_nr = edge.output_nr;
    copy.impl().requires_grad = true;
  }
  return copy;
}

void rebase_history(Tensor& self, const Tensor& result) {
  TensorImpl& impl = self.impl();
  if (impl.inference) return;
  const bool recorded = needs_graph({self, result});
  if (recorded && impl.view != nullptr) rebase_base(impl.view->base, self, result);
  impl.storage->bump_version();  // a view now looks for its place in the graph anew
  if (recorded && impl.view == nullptr && result.grad_fn() != nullptr) link(self, result.grad_fn(), result.output_nr());
}

void write_result(Tensor& self, const Tensor& result) {
  checked_result(self, result, result.dtype());
  if (!result.is_same(self)) kernels::copy(self, result);
  rebase_history(self, result);
}

// A view's node is made from its base, whenever the base's memory has changed since the last one.
const std::shared_ptr<Node>& Tensor::grad_fn() const {
  TensorImpl& t = impl();
  if (t.view == nullptr || t.view->version == t.storage->version()) return t.grad_fn;
  t.view->version = t.storage->version();
  const Tensor& base = t.view->base;
  if (!base.requires_grad() || t.view->kind != ViewKind::kDefault) return t.grad_fn;
  const EnableGradGuard recording;
  const Tensor made = base.as_strided(t.shape, t.strides, storage_offset());
  t.grad_fn = made.impl().grad_fn;
  t.output_nr = 0;
  return t.grad_fn;
}

Tensor& Tensor::zero_() {
  check_in_place(*this);
  kernels::fill(*this, 0);
  rebase_history(*this, record("ZeroBackward0", {*this}, detach(), {}, [](const Pass&) { return Tensor(); }));
  return *this;
}

Tensor& Tensor::fill_(const Tensor& value) {
  require(value.ndim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
          value.ndim());
  check_in_place(*this);
  kernels::copy(*this, value);
  rebase_history(*this, record(value.is_wrapped_number() ? "FillBackward2" : "FillBackward0", {*this, value}, detach(),
                               {}, [](const Pass& p) { p.give(1, p.g()); }));
  return *this;
}

Tensor& Tensor::copy_(const Tensor& source) {
  check_in_place(*this);
  require(is_expandable_to(source.shape(), shape()), "output with shape {} doesn't match the broadcast shape {}",
          shape(), broadcast_shape(shape(), source.shape()));
  const bool shares = storage() == source.storage() && !is_meta();
  const bool same = shares && storage_offset() == source.storage_offset() && strides() == source.strides() &&
                    dtype() == source.dtype();
  if (!same) kernels::copy(*this, shares ? source.detach().clone() : source);  // read before it is written
  rebase_history(*this, record("CopyBackwards", {*this, source}, detach(), {}, [](const Pass& p) {
    if (p.needs(0)) p.give(0, zeros_like(p.g()));
    p.give(1, p.g());
  }));
  return *this;
}

Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) {
  return arithmetic(*this, other, BinaryOp::kAdd, alpha,
                    [&](const Tensor& x, const Tensor& y) { return add(x, y, alpha); });
}
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) {
  return arithmetic(*this, other, BinaryOp::kSub, alpha,
                    [&](const Tensor& x, const Tensor& y) { return sub(x, y, alpha); });
}
Tensor& Tensor::mul_(const Tensor& other) {
  return arithmetic(*this, other, BinaryOp::kMul, 1, [](const Tensor& x, const Tensor& y) { return mul(x, y); });
}
Tensor& Tensor::div_(const Tensor& other) {
  return arithmetic(*this, other, BinaryOp::kDiv, 1, [](const Tensor& x, const Tensor& y) { return div(x, y); });
}

}  // namespace infeed

// Elementwise operations and their backward.

#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "train/kernels/elementwise.h"

namespace infeed {
namespace {

using Grads = std::span<Tensor>;
using kernels::BinaryOp;
using kernels::CompareOp;
using kernels::UnaryOp;

struct AddBackward final : Node {
  AddBackward(const Tensor& a, const Tensor& b, double sign)
      : Node(sign > 0 ? "add" : "sub"), a_shape(a.shape()), b_shape(b.shape()), b_sign(sign) {}
  void backward(Grads grads, Grads inputs) override {
    if (needs_input_grad(0)) inputs[0] = sum_to(grads[0], a_shape);
    if (needs_input_grad(1)) inputs[1] = sum_to(b_sign > 0 ? grads[0] : -grads[0], b_shape);
  }
  Shape a_shape, b_shape;
  double b_sign;
};

struct MulBackward final : Node {
  MulBackward(const Tensor& a, const Tensor& b) : Node("mul") { save({a, b}); }
  void backward(Grads grads, Grads inputs) override {
    const Tensor& a = saved(0);
    const Tensor& b = saved(1);
    if (needs_input_grad(0)) inputs[0] = sum_to(grads[0] * b, a.shape());
    if (needs_input_grad(1)) inputs[1] = sum_to(grads[0] * a, b.shape());
  }
};

struct DivBackward final : Node {
  DivBackward(const Tensor& a, const Tensor& b) : Node("div") { save({a, b}); }
  void backward(Grads grads, Grads inputs) override {
    const Tensor& a = saved(0);
    const Tensor& b = saved(1);
    const Tensor by_b = grads[0] / b;
    if (needs_input_grad(0)) inputs[0] = sum_to(by_b, a.shape());
    if (needs_input_grad(1)) inputs[1] = sum_to(-(by_b * a / b), b.shape());
  }
};

struct AffineBackward final : Node {
  explicit AffineBackward(double factor) : Node("affine"), scale(factor) {}
  void backward(Grads grads, Grads inputs) override { inputs[0] = scale == 1.0 ? grads[0] : grads[0] * scale; }
  double scale;
};

struct ReluBackward final : Node {
  explicit ReluBackward(const Tensor& y) : Node("relu") { save({y}); }
  void backward(Grads grads, Grads inputs) override { inputs[0] = kernels::relu_backward(grads[0], saved(0)); }
};

struct ExpBackward final : Node {
  explicit ExpBackward(const Tensor& y) : Node("exp") { save({y}); }
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0] * saved(0); }
};

struct LogBackward final : Node {
  explicit LogBackward(const Tensor& x) : Node("log") { save({x}); }
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0] / saved(0); }
};

struct ReciprocalBackward final : Node {
  explicit ReciprocalBackward(const Tensor& y) : Node("reciprocal") { save({y}); }
  void backward(Grads grads, Grads inputs) override { inputs[0] = -(grads[0] * saved(0) * saved(0)); }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor out = kernels::binary(BinaryOp::kAdd, a, b);
  if (needs_graph({a, b})) connect(std::make_shared<AddBackward>(a, b, 1.0), {a, b}, out);
  return out;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  Tensor out = kernels::binary(BinaryOp::kSub, a, b);
  if (needs_graph({a, b})) connect(std::make_shared<AddBackward>(a, b, -1.0), {a, b}, out);
  return out;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out = kernels::binary(BinaryOp::kMul, a, b);
  if (needs_graph({a, b})) connect(std::make_shared<MulBackward>(a, b), {a, b}, out);
  return out;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out = kernels::binary(BinaryOp::kDiv, a, b);
  if (needs_graph({a, b})) connect(std::make_shared<DivBackward>(a, b), {a, b}, out);
  return out;
}

Tensor affine(const Tensor& x, double scale, double shift) {
  Tensor out = Tensor::empty_like(x);
  kernels::affine(out, x, scale, shift);
  if (needs_graph({x})) connect(std::make_shared<AffineBackward>(scale), {x}, out);
  return out;
}

Tensor relu(const Tensor& x) {
  Tensor out = kernels::unary(UnaryOp::kRelu, x);
  if (needs_graph({x})) connect(std::make_shared<ReluBackward>(out), {x}, out);
  return out;
}

Tensor exp(const Tensor& x) {
  Tensor out = kernels::unary(UnaryOp::kExp, x);
  if (needs_graph({x})) connect(std::make_shared<ExpBackward>(out), {x}, out);
  return out;
}

Tensor log(const Tensor& x) {
  Tensor out = kernels::unary(UnaryOp::kLog, x);
  if (needs_graph({x})) connect(std::make_shared<LogBackward>(x), {x}, out);
  return out;
}

Tensor reciprocal(const Tensor& x) {
  Tensor out = kernels::unary(UnaryOp::kReciprocal, x);
  if (needs_graph({x})) connect(std::make_shared<ReciprocalBackward>(out), {x}, out);
  return out;
}

Tensor eq(const Tensor& a, const Tensor& b) { return kernels::compare(CompareOp::kEq, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return kernels::compare(CompareOp::kLt, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return kernels::compare(CompareOp::kGt, a, b); }

}  // namespace infeed

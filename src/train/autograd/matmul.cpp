// Matrix products and their backward.

#include "train/kernels/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"

namespace infeed {
namespace {

using Grads = std::span<Tensor>;

struct MatmulBackward final : Node {
  MatmulBackward(const Tensor& a, const Tensor& b) : Node("matmul") { save({a, b}); }
  void backward(Grads grads, Grads inputs) override {
    const Tensor& a = saved(0);
    const Tensor& b = saved(1);
    if (needs_input_grad(0)) inputs[0] = sum_to(kernels::matmul(grads[0], b.transpose(-2, -1)), a.shape());
    if (needs_input_grad(1)) inputs[1] = sum_to(kernels::matmul(a.transpose(-2, -1), grads[0]), b.shape());
  }
};

void check(const Tensor& a, const Tensor& b) {
  const auto fail = [&](std::string_view why) {
    throw ConfigError(fmt::format("matmul: {}: {}{} x {}{}.", why, to_string(a.dtype()), a.shape().str(),
                                  to_string(b.dtype()), b.shape().str()));
  };
  if (a.dtype() != DType::kFloat32 || b.dtype() != DType::kFloat32) fail("both sides must be float32");
  if (a.ndim() == 0 || b.ndim() == 0) fail("a scalar is no matrix, use *");
  if (a.size(-1) != b.size(b.ndim() == 1 ? 0 : -2)) fail("columns of the left and rows of the right side differ");
}

// Both of as many dimensions as the larger one: [m, k] beside [b, k, n] becomes [1, m, k].
Tensor with_ndim(Tensor x, int ndim) {
  while (x.ndim() < ndim) x = x.unsqueeze(0);
  return x;
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor out = kernels::matmul(a, b);
  if (needs_graph({a, b})) connect(std::make_shared<MatmulBackward>(a, b), {a, b}, out);
  return out;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a, b);
  if (a.ndim() == 2 && b.ndim() == 2) return product(a, b);
  if (a.ndim() == 1) return matmul(a.unsqueeze(0), b).squeeze(-1 - (b.ndim() > 1 ? 1 : 0));
  if (b.ndim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (b.ndim() == 2) {  // rows of all batches in one product
    Shape shape = a.shape();
    shape[a.ndim() - 1] = b.size(1);
    return product(a.reshape({-1, a.size(-1)}), b).view(shape);
  }
  const int ndim = std::max(a.ndim(), b.ndim());
  return product(with_ndim(a, ndim), with_ndim(b, ndim));
}

}  // namespace infeed

// Matrix products and their backward.

#include "infeed/train/autograd/linalg.h"

#include <algorithm>

#include "infeed/train/autograd/ops.h"
#include "train/autograd/autocast.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/matmul.h"
#include "train/tensor/check.h"

namespace infeed {
namespace {

void check_pair(std::string_view op, const Tensor& a, const Tensor& b, int ndim_a, int ndim_b) {
  (void)common_device(a, b);
  require(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: {} != {}", to_string(a.dtype()),
          to_string(b.dtype()));
  require(a.ndim() == ndim_a && b.ndim() == ndim_b, "{}: expected tensors of {} and {} dimensions, got {} and {}", op,
          ndim_a, ndim_b, a.ndim(), b.ndim());
}

void check_inner(const Tensor& a, const Tensor& b) {
  require(a.size(-1) == b.size(-2), "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", a.size(-2),
          a.size(-1), b.size(-2), b.size(-1));
}

// Any number of equal leading dimensions.
Tensor product(std::string_view name, const Tensor& a, const Tensor& b) {
  return record(name, {a, b}, kernels::matmul(a, b), {saved_for(b, a), saved_for(a, b)}, [name](const Pass& p) {
    if (p.needs(0)) p.give(0, product(name, p.g(), p.saved(1).transpose(-2, -1)));
    if (p.needs(1)) p.give(1, product(name, p.saved(0).transpose(-2, -1), p.g()));
  });
}

Tensor flat_batch(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return x.expand(shape).reshape({batch.numel(), x.size(-2), x.size(-1)});
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  if (amp::is_active()) return amp::lowered(mm, a, b);
  require(a.ndim() == 2 && b.ndim() == 2, "{} must be a matrix", a.ndim() != 2 ? "self" : "mat2");
  check_pair("mm", a, b, 2, 2);
  check_inner(a, b);
  return product("MmBackward0", a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (amp::is_active()) return amp::lowered(bmm, a, b);
  require(a.ndim() == 3, "batch1 must be a 3D tensor");
  require(b.ndim() == 3, "batch2 must be a 3D tensor");
  check_pair("bmm", a, b, 3, 3);
  require(a.size(0) == b.size(0) && a.size(2) == b.size(1),
          "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].", a.size(0),
          a.size(2), b.size(0), b.size(1));
  return product("BmmBackward0", a, b);
}

Tensor mv(const Tensor& a, const Tensor& v) {
  check_pair("mv", a, v, 2, 1);
  require(a.size(1) == v.size(0), "size mismatch, got input ({}), mat ({}x{}), vec ({})", a.size(0), a.size(0),
          a.size(1), v.size(0));
  const Tensor y = kernels::matmul(a, v.detach().unsqueeze(1)).view({a.size(0)});
  return record("MvBackward0", {a, v}, y, {saved_for(v, a), saved_for(a, v)}, [](const Pass& p) {
    if (p.needs(0)) p.give(0, outer(p.g(), p.saved(1)));
    if (p.needs(1)) p.give(1, mv(p.saved(0).t(), p.g()));
  });
}

Tensor dot(const Tensor& a, const Tensor& b) {
  require(a.ndim() == 1 && b.ndim() == 1, "1D tensors expected, but got {}D and {}D tensors", a.ndim(), b.ndim());
  require(a.numel() == b.numel(),
          "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but got {} "
          "and {} elements respectively",
          a.numel(), b.numel(), a.numel(), b.numel());
  check_pair("dot", a, b, 1, 1);
  const Tensor y = kernels::matmul(a.detach().unsqueeze(0), b.detach().unsqueeze(1)).view({});
  return record("DotBackward0", {a, b}, y, {saved_for(b, a), saved_for(a, b)}, [](const Pass& p) {
    if (p.needs(0)) p.give(0, p.g() * p.saved(1));
    if (p.needs(1)) p.give(1, p.g() * p.saved(0));
  });
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require(a.ndim() == 1 && b.ndim() == 1, "outer: Expected 1-D argument self and vec2, but got {}-D and {}-D", a.ndim(),
          b.ndim());
  return a.unsqueeze(1) * b;
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (amp::is_active()) return amp::lowered(addmm, x, a, b, beta, alpha);
  require(a.ndim() == 2 && b.ndim() == 2, "mat1 and mat2 must be matrices, got {}-D and {}-D tensors", a.ndim(),
          b.ndim());
  check_pair("addmm", a, b, 2, 2);
  check_inner(a, b);
  const double by_x = beta.to_double();
  const double by_product = alpha.to_double();
  const bool bias =
      by_x == 1.0 && by_product == 1.0 && x.ndim() == 1 && x.size(0) == b.size(1) && x.dtype() == a.dtype();
  Tensor y;
  if (bias) {
    y = kernels::matmul(a, b, x.detach().contiguous());
  } else {
    y = is_half(a.dtype()) ? kernels::matmul(widened(a.detach()), widened(b.detach())) : kernels::matmul(a, b);
    require(is_expandable_to(x.shape(), y.shape()),
            "The expanded size of the tensor must match the existing size. Target sizes: {}.  Tensor sizes: {}",
            y.shape(), x.shape());
    if (by_product != 1.0) kernels::unary(kernels::UnaryOp::kAffine, y, y, y.dtype(), by_product, 0.0);
    kernels::binary(kernels::BinaryOp::kAdd, y, y, x, y.dtype(), by_x);
    y = y.to(a.dtype());
  }
  return record("AddmmBackward0", {x, a, b}, y, {saved_for(b, a), saved_for(a, b)}, [by_x, by_product](const Pass& p) {
    const Tensor g = by_product == 1.0 ? p.g() : p.g() * by_product;
    if (p.needs(0)) p.give(0, by_x == 1.0 ? p.g() : p.g() * by_x);
    if (p.needs(1)) p.give(1, mm(g, p.saved(1).t()));
    if (p.needs(2)) p.give(2, mm(p.saved(0).t(), g));
  });
}

Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (amp::is_active()) return amp::lowered(baddbmm, x, a, b, beta, alpha);
  if (is_half(a.dtype())) return baddbmm(widened(x), widened(a), widened(b), beta, alpha).to(a.dtype());
  const Tensor y = bmm(a, b);
  return add(alpha.to_double() == 1.0 ? y : y * Tensor::wrapped(alpha), x, beta);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (amp::is_active()) return amp::lowered(matmul, a, b);
  require(a.ndim() > 0 && b.ndim() > 0, "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
          a.ndim(), b.ndim());
  if (a.ndim() == 1 && b.ndim() == 1) return dot(a, b);
  if (a.ndim() == 2 && b.ndim() == 2) return mm(a, b);
  if (a.ndim() == 2 && b.ndim() == 1) return mv(a, b);
  if (a.ndim() <= 2 && b.ndim() > 2 && a.requires_grad()) {  // a's gradient is one product over all batches
    const Tensor turned = b.transpose(-2, -1);
    return a.ndim() == 1 ? matmul(turned, a) : matmul(turned, a.t()).transpose(-2, -1).contiguous();
  }
  if (a.ndim() == 1) return matmul(a.unsqueeze(0), b).squeeze(-2);
  if (b.ndim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (b.ndim() == 2) {  // rows of all batches in one product
    Shape shape = a.shape();
    shape[a.ndim() - 1] = 1;
    const std::int64_t rows = shape.numel();
    shape[a.ndim() - 1] = b.size(1);
    return mm(a.reshape({rows, a.size(-1)}), b).view(shape);
  }
  const auto leading = [](const Tensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.ndim() - 2)));
  };
  const Shape batch = broadcast_shape(leading(a), leading(b));
  check_pair("matmul", a, b, a.ndim(), b.ndim());
  check_inner(a, b);
  if (leading(a) == batch && leading(b) == batch) return product("BmmBackward0", a, b);  // strided views as they are
  Shape shape = batch;
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  return bmm(flat_batch(a, batch), flat_batch(b, batch)).view(shape);
}

}  // namespace infeed

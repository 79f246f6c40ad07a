// Matrix products.

#include "binder.h"
#include "infeed/train/autograd/linalg.h"

namespace infeed::python {
namespace {

using Product = Tensor (*)(const Tensor&, const Tensor&);

template <Product op>
Tensor product(const Tensor& a, const Tensor& b) {
  const Unlocked unlocked(a.numel() + b.numel());
  return op(a, b);
}

template <Product op>
void bind_product(const Binder& to, const char* name, const char* second) {
  to.both(name, product<op>, "input"_a, nb::arg(second));
}

using Sum = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&);

template <Sum op>
Tensor sum_of_product(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  const Unlocked unlocked(a.numel() + b.numel());
  return op(x, a, b, beta, alpha);
}

}  // namespace

void bind_matmul(const Binder& to) {
  bind_product<matmul>(to, "matmul", "other");
  bind_product<mm>(to, "mm", "mat2");
  bind_product<bmm>(to, "bmm", "mat2");
  bind_product<mv>(to, "mv", "vec");
  bind_product<dot>(to, "dot", "tensor");
  bind_product<outer>(to, "outer", "vec2");
  to.tensor.def("__matmul__", product<matmul>, nb::is_operator());
  to.tensor.def(
      "__rmatmul__", [](const Tensor& a, const Tensor& b) { return product<matmul>(b, a); }, nb::is_operator());
  to.both("addmm", sum_of_product<addmm>, "input"_a, "mat1"_a, "mat2"_a, nb::kw_only(), "beta"_a = Scalar(1),
          "alpha"_a = Scalar(1));
  to.both("baddbmm", sum_of_product<baddbmm>, "input"_a, "batch1"_a, "batch2"_a, nb::kw_only(), "beta"_a = Scalar(1),
          "alpha"_a = Scalar(1));
}

}  // namespace infeed::python

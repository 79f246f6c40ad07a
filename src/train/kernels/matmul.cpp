#include "train/kernels/matmul.h"

#include <algorithm>
#include <utility>

#include "train/kernels/convert.h"
#include "train/kernels/copy.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/on_device.h"
#include "train/kernels/order.h"
#include "train/kernels/parallel.h"
#include "train/kernels/primitive.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

// oneDNN's fast kernels read a matrix whose rows or columns are contiguous and do not overlap.
Tensor readable(const Tensor& x) {
  const int rows = x.ndim() - 2;
  const int columns = x.ndim() - 1;
  const std::int64_t row_stride = x.strides()[rows];
  const std::int64_t column_stride = x.strides()[columns];
  const bool plain =
      (column_stride == 1 && row_stride >= x.shape()[columns]) || (row_stride == 1 && column_stride >= x.shape()[rows]);
  bool repeats = false;
  for (int dim = 0; dim < rows; ++dim) repeats = repeats || (x.strides()[dim] == 0 && x.shape()[dim] != 1);
  return plain && !repeats ? x : x.detach().contiguous();
}

Shape product_shape(const Tensor& a, const Tensor& b) {
  const auto leading = static_cast<std::size_t>(a.ndim() - 2);
  Shape shape = broadcast_shape(Shape(a.shape().span().first(leading)), Shape(b.shape().span().first(leading)));
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  return shape;
}

// out[m, n] = a[m, k] b[k, n], rows of `out` shared among threads. Four rows of b at a time stay in registers' reach.
template <class T>
void plain_product(const Tensor& out, const Tensor& a, const Tensor& b) {
  const std::int64_t k = a.size(1);
  const std::int64_t n = out.size(1);
  const T* const left = a.data<T>();
  const T* const right = b.data<T>();
  T* const to = out.data<T>();
  parallel_for(out.size(0), std::max<std::int64_t>(1, kGrain / 4 / std::max<std::int64_t>(1, k * n)),
               [=](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   T* const sums = to + row * n;
                   std::fill(sums, sums + n, T{0});
                   for (std::int64_t i = 0; i < k; ++i) {
                     const T factor = left[row * k + i];
                     const T* const from = right + i * n;
                     for (std::int64_t j = 0; j < n; ++j) sums[j] += factor * from[j];
                   }
                 }
               });
}

// Types that oneDNN does not multiply: float64 and integers, one matrix of the batch after the other.
Tensor own_matmul(const Tensor& a_given, const Tensor& b_given) {
  const Tensor a = a_given.detach().contiguous();
  const Tensor b = b_given.detach().contiguous();
  Tensor out = Tensor::empty(product_shape(a, b), a.options());
  if (out.numel() == 0) return out;
  Shape batch(out.shape().span().first(static_cast<std::size_t>(out.ndim() - 2)));
  const auto matrices = [&](const Tensor& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    const Strides strides = broadcast_strides(x.shape(), x.strides(), shape);
    return offsets_of(batch, Strides(strides.span().first(static_cast<std::size_t>(batch.ndim()))));
  };
  const auto a_at = matrices(a), b_at = matrices(b);
  const std::int64_t size = out.size(-2) * out.size(-1);
  with_compute(a.dtype(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, float>) {
      for (std::size_t i = 0; i < a_at.size(); ++i)
        plain_product<T>(
            alias(out, static_cast<std::int64_t>(i) * size, {out.size(-2), out.size(-1)}, {out.size(-1), 1}),
            alias(a, a_at[i], {a.size(-2), a.size(-1)}, {a.size(-1), 1}),
            alias(b, b_at[i], {b.size(-2), b.size(-1)}, {b.size(-1), 1}));
    }
  });
  return out;
}

bool native(DType dtype) { return dtype == DType::kFloat32 || (dtype == DType::kBFloat16 && has_bfloat16()); }

// In a type that has a kernel, then back.
Tensor by_another_type(const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
  const DType dtype = a.dtype();
  if (is_floating_point(dtype) && dtype != DType::kFloat64)
    return matmul(a.detach().to(DType::kFloat32), b.detach().to(DType::kFloat32),
                  bias.defined() ? bias.detach().to(DType::kFloat32) : bias, relu)
        .to(dtype);
  const DType wide = dtype == DType::kFloat64 ? dtype : DType::kInt64;
  Tensor out = own_matmul(a.detach().to(wide), b.detach().to(wide));
  if (bias.defined()) binary(BinaryOp::kAdd, out, out, bias);
  if (relu) unary(UnaryOp::kRelu, out, out);
  return out.to(dtype);
}

Primitive make(const Tensor& a, const Tensor& b, const Tensor& out, bool with_bias, bool relu) {
  const auto a_desc = describe(a);
  const auto b_desc = describe(b);
  const auto out_desc = describe(out);
  if (!with_bias) {
    const auto desc = forward_desc<dnnl::matmul>(with_relu(relu), a_desc, b_desc, out_desc);
    return Primitive(dnnl::matmul(desc), desc,
                     {{DNNL_ARG_SRC, a_desc}, {DNNL_ARG_WEIGHTS, b_desc}, {DNNL_ARG_DST, out_desc}});
  }
  Shape bias_shape = out.shape();
  for (int dim = 0; dim < out.ndim() - 1; ++dim) bias_shape[dim] = 1;
  const auto bias_desc = describe(bias_shape, Strides::contiguous(bias_shape), out.dtype());
  const auto desc = forward_desc<dnnl::matmul>(with_relu(relu), a_desc, b_desc, bias_desc, out_desc);
  return Primitive(
      dnnl::matmul(desc), desc,
      {{DNNL_ARG_SRC, a_desc}, {DNNL_ARG_WEIGHTS, b_desc}, {DNNL_ARG_BIAS, bias_desc}, {DNNL_ARG_DST, out_desc}});
}

}  // namespace

Tensor matmul(const Tensor& a_given, const Tensor& b_given, const Tensor& bias, bool relu) {
  if (a_given.is_meta()) return Tensor::empty(product_shape(a_given, b_given), a_given.options());
  if (is_on_device(a_given)) return on_device::matmul(a_given, b_given, bias, relu);
  if (!native(a_given.dtype())) return by_another_type(a_given, b_given, bias, relu);
  const Tensor a = readable(a_given);
  const Tensor b = readable(b_given);
  Tensor out = Tensor::empty(product_shape(a, b), a.options());
  if (out.numel() == 0) return out;
  if (a.size(-1) == 0) {
    fill(out, 0);
    if (bias.defined()) copy(out, bias);
    return out;
  }
  thread_local Cache<Primitive> cache;
  const int variant = (bias.defined() ? 1 : 0) + (relu ? 2 : 0);
  Primitive& primitive = cache.get(Key().add(a).add(b).add(variant).add(static_cast<std::int64_t>(a.dtype())),
                                   [&] { return make(a, b, out, bias.defined(), relu); });
  primitive.run({{DNNL_ARG_SRC, a.data_ptr()},
                 {DNNL_ARG_WEIGHTS, b.data_ptr()},
                 {DNNL_ARG_BIAS, bias.defined() ? bias.data_ptr() : nullptr},
                 {DNNL_ARG_DST, out.data_ptr()}});
  return out;
}

}  // namespace infeed::kernels

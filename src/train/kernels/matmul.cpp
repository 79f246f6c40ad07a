#include "train/kernels/matmul.h"

#include "train/kernels/copy.h"
#include "train/kernels/primitive.h"
#include "train/tensor/geometry.h"

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
  return plain && !repeats ? x : x.contiguous();
}

Shape product_shape(const Tensor& a, const Tensor& b) {
  const auto leading = static_cast<std::size_t>(a.ndim() - 2);
  Shape shape =
      broadcast_shape("matmul", Shape(a.shape().span().first(leading)), Shape(b.shape().span().first(leading)));
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  return shape;
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
  const auto bias_desc = describe(bias_shape, Strides::contiguous(bias_shape));
  const auto desc = forward_desc<dnnl::matmul>(with_relu(relu), a_desc, b_desc, bias_desc, out_desc);
  return Primitive(
      dnnl::matmul(desc), desc,
      {{DNNL_ARG_SRC, a_desc}, {DNNL_ARG_WEIGHTS, b_desc}, {DNNL_ARG_BIAS, bias_desc}, {DNNL_ARG_DST, out_desc}});
}

}  // namespace

Tensor matmul(const Tensor& a_given, const Tensor& b_given, const Tensor& bias, bool relu) {
  const Tensor a = readable(a_given);
  const Tensor b = readable(b_given);
  Tensor out = Tensor::empty(product_shape(a, b));
  if (out.numel() == 0) return out;
  if (a.size(-1) == 0) {
    fill(out, 0.0);
    if (bias.defined()) copy(out, bias);
    return out;
  }
  thread_local Cache<Primitive> cache;
  const int variant = (bias.defined() ? 1 : 0) + (relu ? 2 : 0);
  Primitive& primitive =
      cache.get(Key().add(a).add(b).add(variant), [&] { return make(a, b, out, bias.defined(), relu); });
  primitive.run({{DNNL_ARG_SRC, a.data_ptr()},
                 {DNNL_ARG_WEIGHTS, b.data_ptr()},
                 {DNNL_ARG_BIAS, bias.defined() ? bias.data_ptr() : nullptr},
                 {DNNL_ARG_DST, out.data_ptr()}});
  return out;
}

}  // namespace infeed::kernels

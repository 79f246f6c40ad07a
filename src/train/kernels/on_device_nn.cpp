// Products, losses, convolutions and windows on a device.

#include "infeed/train/autograd/grad_mode.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/on_device.h"
#include "train/kernels/reduce.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"

namespace infeed::kernels::on_device {
namespace {

Tensor dense(const Tensor& x) { return x.defined() ? x.detach().contiguous() : x; }

TensorOptions floats_like(const Tensor& x) { return {DType::kFloat32, x.device()}; }

infeed_rows rows_of(const Tensor& x) {
  const std::int64_t columns = x.size(-1);
  return {columns == 0 ? 0 : x.numel() / columns, columns};
}

}  // namespace

void reduce_rows(std::int32_t reduction, const Tensor& out, const Tensor& x, infeed_rows shape) {
  const Launch launch(reduction == INFEED_REDUCE_MAX ? "max" : reduction == INFEED_REDUCE_MIN ? "min" : "sum", out);
  launch(&infeed_kernel_api::reduce_rows, reduction, launch.at<const float>(x), launch.at(out), shape);
}

void sum_columns(const Tensor& out, const Tensor& x, infeed_rows shape) {
  const Launch launch("sum", out);
  launch(&infeed_kernel_api::sum_columns, launch.at<const float>(x), launch.at(out), shape);
}

void argmax_rows(const Tensor& out, const Tensor& x, infeed_rows shape) {
  const Launch launch("argmax", out);
  launch(&infeed_kernel_api::argmax_rows, launch.at<const float>(x), launch.at<std::int64_t>(out), shape);
}

Tensor along_rows(const char* op, RowKernel kernel, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), x.options());
  const Launch launch(op, x);
  launch(kernel, launch.at<const float>(x), launch.at(y), rows_of(x));
  return y;
}

Tensor along_rows(const char* op, RowBackward kernel, const Tensor& g, const Tensor& y) {
  Tensor out = Tensor::empty(y.shape(), y.options());
  const Launch launch(op, y);
  launch(kernel, launch.at<const float>(g), launch.at<const float>(y), launch.at(out), rows_of(y));
  return out;
}

// ---- Products ----

namespace {

// A matrix as a kernel reads it: stored as it is, or transposed, or copied.
struct Stored {
  Tensor matrix;
  bool transposed;

  explicit Stored(const Tensor& given) : matrix(given.detach()), transposed(false) {
    if (matrix.is_contiguous()) return;
    const Tensor turned = matrix.t();
    transposed = turned.is_contiguous();
    matrix = transposed ? turned : matrix.contiguous();
  }
};

void multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  const Launch launch("matmul", out);
  const Stored left(a), right(b);
  launch(&infeed_kernel_api::matmul, launch.at<const float>(left.matrix), launch.at<const float>(right.matrix),
         launch.at(out),
         infeed_matmul{out.size(0), out.size(1), a.size(1), left.transposed ? 1 : 0, right.transposed ? 1 : 0});
}

// x as [batch, rows, columns].
Tensor batch_of(const Tensor& x, const Shape& out) {
  Shape shape = out;
  shape[out.ndim() - 2] = x.size(-2);
  shape[out.ndim() - 1] = x.size(-1);
  return x.detach().expand(shape).reshape({-1, x.size(-2), x.size(-1)});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
  const NoGradGuard no_grad;
  const auto leading = [](const Tensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.ndim() - 2)));
  };
  Shape shape = broadcast_shape(leading(a), leading(b));
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  Tensor out = Tensor::empty(shape, a.options());
  if (out.numel() == 0) return out;
  if (out.ndim() == 2) {
    multiply(out, a, b);
  } else {
    const Tensor as = batch_of(a, shape), bs = batch_of(b, shape), outs = out.view({-1, a.size(-2), b.size(-1)});
    for (std::int64_t i = 0; i < outs.size(0); ++i) multiply(outs.select(0, i), as.select(0, i), bs.select(0, i));
  }
  if (bias.defined()) kernels::binary(BinaryOp::kAdd, out, out, bias);
  if (relu) kernels::unary(UnaryOp::kRelu, out, out);
  return out;
}

// ---- Losses ----

namespace {

infeed_classes classes_of(const Tensor& x, const CrossEntropySpec& spec) {
  return {x.size(0), x.size(1), spec.ignore_index, spec.label_smoothing};
}

}  // namespace

CrossEntropyResult cross_entropy(const Tensor& x, const Tensor& labels, const CrossEntropySpec& spec) {
  const NoGradGuard no_grad;
  const Tensor losses = Tensor::empty({x.size(0)}, x.options());
  CrossEntropyResult result{{}, Tensor::empty({2, x.size(0)}, x.options())};
  const Tensor logsumexp = result.normalise.select(0, 0), counts = result.normalise.select(0, 1);
  const Launch launch("cross_entropy", x);
  launch(&infeed_kernel_api::cross_entropy, launch.at<const float>(x), launch.at<const std::int64_t>(labels),
         launch.at(losses), launch.at(logsumexp), launch.at(counts), classes_of(x, spec));
  const Tensor loss = sum_keepdim(losses, {0});
  kernels::binary(BinaryOp::kDiv, loss, loss, sum_keepdim(counts, {0}));
  result.loss = alias(loss, 0, {}, {});
  return result;
}

Tensor cross_entropy_backward(const Tensor& g, const Tensor& x, const Tensor& normalise, const Tensor& labels,
                              const CrossEntropySpec& spec) {
  const NoGradGuard no_grad;
  const Tensor scale = Tensor::empty({1}, x.options());
  kernels::binary(BinaryOp::kDiv, scale, g, sum_keepdim(normalise.select(0, 1), {0}));
  Tensor out = Tensor::empty(x.shape(), x.options());
  const Launch launch("cross_entropy_backward", x);
  launch(&infeed_kernel_api::cross_entropy_backward, launch.at<const float>(scale), launch.at<const float>(x),
         launch.at<const float>(normalise.select(0, 0)), launch.at<const std::int64_t>(labels), launch.at(out),
         classes_of(x, spec));
  return out;
}

PickedClasses pick_classes(const Tensor& x, const Tensor& labels, std::int64_t ignore_index) {
  PickedClasses picked{Tensor::empty({x.size(0)}, x.options()), Tensor::empty({x.size(0)}, x.options())};
  const Launch launch("nll_loss", x);
  launch(&infeed_kernel_api::pick_classes, launch.at<const float>(x), launch.at<const std::int64_t>(labels),
         launch.at(picked.losses), launch.at(picked.counts), classes_of(x, {ignore_index, 0.0}));
  return picked;
}

Tensor pick_classes_backward(const Tensor& g, const Tensor& labels, const Shape& x_shape, std::int64_t ignore_index) {
  Tensor out = Tensor::empty(x_shape, floats_like(g));
  const Launch launch("nll_loss_backward", g);
  launch(&infeed_kernel_api::pick_classes_backward, launch.at<const float>(g), launch.at<const std::int64_t>(labels),
         launch.at(out), classes_of(out, {ignore_index, 0.0}));
  return out;
}

// ---- Convolutions ----

namespace {

infeed_convolution convolution_of(const Shape& x, const Shape& w, const Shape& y, const ConvGeometry& g) {
  return {.n = x[0],
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .o = w[0],
          .kh = w[2],
          .kw = w[3],
          .stride = {g.stride[0], g.stride[1]},
          .padding = {g.padding[0], g.padding[1]},
          .dilation = {g.dilation[0], g.dilation[1]},
          .groups = g.groups,
          .out_h = y[2],
          .out_w = y[3]};
}

}  // namespace

Tensor conv2d(const Tensor& x_given, const Tensor& weight_given, const Tensor& bias, const ConvGeometry& g, bool relu) {
  const Tensor x = dense(x_given), weight = dense(weight_given);
  Tensor y = Tensor::empty(conv2d_shape(x.shape(), weight.shape(), g), x.options());
  const Launch launch("conv2d", x);
  launch(&infeed_kernel_api::conv2d, launch.at<const float>(x), launch.at<const float>(weight),
         launch.at<const float>(dense(bias)), launch.at(y), convolution_of(x.shape(), weight.shape(), y.shape(), g));
  if (relu) kernels::unary(UnaryOp::kRelu, y, y);
  return y;
}

Tensor conv2d_backward_input(const Tensor& grad_given, const Tensor& weight_given, const Shape& x_shape,
                             const ConvGeometry& g) {
  const Tensor grad = dense(grad_given), weight = dense(weight_given);
  Tensor out = Tensor::empty(x_shape, grad.options());
  const Launch launch("conv2d_backward", grad);
  launch(&infeed_kernel_api::conv2d_backward_input, launch.at<const float>(grad), launch.at<const float>(weight),
         launch.at(out), convolution_of(x_shape, weight.shape(), grad.shape(), g));
  return out;
}

ConvWeightGrads conv2d_backward_weight(const Tensor& grad_given, const Tensor& x_given, const Shape& weight_shape,
                                       bool with_bias, const ConvGeometry& g) {
  const Tensor grad = dense(grad_given), x = dense(x_given);
  ConvWeightGrads grads{Tensor::empty(weight_shape, x.options()), {}};
  const Launch launch("conv2d_backward", grad);
  launch(&infeed_kernel_api::conv2d_backward_weight, launch.at<const float>(grad), launch.at<const float>(x),
         launch.at(grads.weight), convolution_of(x.shape(), weight_shape, grad.shape(), g));
  if (with_bias) grads.bias = alias(sum_keepdim(grad, {0, 2, 3}), 0, {weight_shape[0]}, {1});
  return grads;
}

// ---- Windows ----

namespace {

infeed_pooling pooling_of(const Shape& x, const Shape& y, const PoolGeometry& g) {
  return {.planes = x[0] * x[1],
          .h = x[2],
          .w = x[3],
          .kernel = {g.kernel[0], g.kernel[1]},
          .stride = {g.stride[0], g.stride[1]},
          .padding = {g.padding[0], g.padding[1]},
          .out_h = y[2],
          .out_w = y[3]};
}

}  // namespace

MaxPoolResult max_pool2d(const Tensor& x_given, const PoolGeometry& g) {
  const Tensor x = dense(x_given);
  const Shape shape = pool2d_shape(x.shape(), g);
  MaxPoolResult result{Tensor::empty(shape, x.options()), Tensor::empty(shape, {DType::kInt64, x.device()})};
  const Launch launch("max_pool2d", x);
  launch(&infeed_kernel_api::max_pool2d, launch.at<const float>(x), launch.at(result.y),
         launch.at<std::int64_t>(result.where), pooling_of(x.shape(), shape, g));
  return result;
}

Tensor max_pool2d_backward(const Tensor& grad_given, const Tensor& where, const Shape& x_shape, const PoolGeometry& g) {
  const Tensor grad = dense(grad_given);
  Tensor out = Tensor::empty(x_shape, grad.options());
  const Launch launch("max_pool2d_backward", grad);
  launch(&infeed_kernel_api::max_pool2d_backward, launch.at<const float>(grad), launch.at<const std::int64_t>(where),
         launch.at(out), pooling_of(x_shape, grad.shape(), g));
  return out;
}

Tensor avg_pool2d(const Tensor& x_given, const PoolGeometry& g) {
  const Tensor x = dense(x_given);
  Tensor y = Tensor::empty(pool2d_shape(x.shape(), g), x.options());
  const Launch launch("avg_pool2d", x);
  launch(&infeed_kernel_api::avg_pool2d, launch.at<const float>(x), launch.at(y), pooling_of(x.shape(), y.shape(), g));
  return y;
}

Tensor avg_pool2d_backward(const Tensor& grad_given, const Shape& x_shape, const PoolGeometry& g) {
  const Tensor grad = dense(grad_given);
  Tensor out = Tensor::empty(x_shape, grad.options());
  const Launch launch("avg_pool2d_backward", grad);
  launch(&infeed_kernel_api::avg_pool2d_backward, launch.at<const float>(grad), launch.at(out),
         pooling_of(x_shape, grad.shape(), g));
  return out;
}

}  // namespace infeed::kernels::on_device

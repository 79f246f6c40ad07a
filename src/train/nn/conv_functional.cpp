// Convolutions: by oneDNN where it computes the dtype, else as a product of windows and weights.

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/autocast.h"
#include "train/autograd/replay.h"
#include "train/autograd/result.h"
#include "train/kernels/conv.h"
#include "train/kernels/dnnl_api.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

using kernels::ConvGeometry;

bool native(const Tensor& x) {
  return !x.is_meta() && (x.dtype() == DType::kFloat32 || (x.dtype() == DType::kBFloat16 && kernels::has_bfloat16()));
}

void check(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g) {
  require(x.ndim() == 4, "Expected 3D (unbatched) or 4D (batched) input to {}, but got input of size: {}", op,
          x.shape());
  require(weight.ndim() == 4, "{}: the weight needs 4 dimensions, it is {}", op, weight.shape());
  require(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
          "Input type ({}) and weight type ({}) should be the same", legacy_name(x.dtype()),
          legacy_name(weight.dtype()));
  for (std::size_t i = 0; i < 2; ++i) {
    require(g.stride[i] >= 1, "non-positive stride is not supported");
    require(g.dilation[i] >= 1, "dilation should be greater than zero");
    require(g.padding[i] >= 0, "negative padding is not supported");
  }
  require(g.groups >= 1, "non-positive groups is not supported");
}

void check_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g) {
  check("conv2d", x, weight, bias, g);
  require(weight.size(0) % g.groups == 0 && x.size(1) == weight.size(1) * g.groups,
          "Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels instead",
          g.groups, weight.shape(), x.shape(), weight.size(1) * g.groups, x.size(1));
  require(
      !bias.defined() || bias.shape() == Shape{weight.size(0)},
      "Given weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} instead",
      weight.shape(), weight.size(0), bias.defined() ? bias.shape() : Shape());
  const Shape y = kernels::conv2d_shape(x.shape(), weight.shape(), g);
  require(
      y[2] >= 1 && y[3] >= 1,
      "Calculated padded input size per channel: ({} x {}). Kernel size: ({} x {}). Kernel size can't be greater than "
      "actual input size",
      x.size(2) + 2 * g.padding[0], x.size(3) + 2 * g.padding[1], weight.size(2), weight.size(3));
}

// y[n, g, o, p] = sum over c, i, j of weight[g, o, c i j] x[n, g, c i j, p], where x is seen as its windows p.
Tensor by_windows(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g) {
  if (is_half(x.dtype())) return by_windows(widened(x), widened(weight), widened(bias), g).to(x.dtype());
  const std::array<std::int64_t, 4> amounts = {g.padding[1], g.padding[1], g.padding[0], g.padding[0]};
  const Tensor padded = pad(x, amounts).contiguous();
  const Shape y = kernels::conv2d_shape(x.shape(), weight.shape(), g);
  const Strides& s = padded.strides();
  const std::int64_t channels = weight.size(1);
  const Tensor windows = padded.as_strided({x.size(0), g.groups, channels, weight.size(2), weight.size(3), y[2], y[3]},
                                           {s[0], s[1] * channels, s[1], s[2] * g.dilation[0], s[3] * g.dilation[1],
                                            s[2] * g.stride[0], s[3] * g.stride[1]});
  const std::int64_t taps = channels * weight.size(2) * weight.size(3);
  const Tensor columns = windows.reshape({x.size(0), g.groups, taps, y[2] * y[3]});
  const Tensor rows = weight.reshape({1, g.groups, weight.size(0) / g.groups, taps});
  const Tensor out = matmul(rows, columns).reshape(y);
  return bias.defined() ? out + bias.view({1, -1, 1, 1}) : out;
}

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g, bool relu) {
  if (x.is_meta()) return Tensor::empty(kernels::conv2d_shape(x.shape(), weight.shape(), g), x.options());
  if (native(x)) return kernels::conv2d(x, weight, bias, g, relu);
  const NoGradGuard no_grad;
  const Tensor y = by_windows(x, weight, bias, g);
  return relu ? infeed::relu(y) : y;
}

void backward(const Pass& p, const ConvGeometry& g) {
  const Tensor x = p.saved(0);
  const Tensor weight = p.saved(1);
  const Tensor y = p.saved(2);  // undefined unless ReLU was applied
  if (grad_enabled() || !native(x)) {
    return replay(p, {x, weight, p.saved(3)}, [&](const std::vector<Tensor>& in) {
      const Tensor out = by_windows(in[0], in[1], in[2], g);
      return y.defined() ? out * gt(y, 0.0).to(out.dtype()) : out;
    });
  }
  Tensor grad = p.g().contiguous(image_format(p.g()));
  if (y.defined()) grad = kernels::relu_backward(grad, y);
  if (p.needs(0)) p.give(0, kernels::conv2d_backward_input(grad, weight, x.shape(), g));
  if (!p.needs(1) && !p.needs(2)) return;
  auto by_weight = kernels::conv2d_backward_weight(grad, x, weight.shape(), p.needs(2), g);
  if (p.needs(1)) p.give(1, std::move(by_weight.weight));
  if (p.needs(2)) p.give(2, std::move(by_weight.bias));
}

ConvGeometry geometry_of(Size2 stride, Size2 padding, Size2 dilation, std::int64_t groups) {
  return {{stride.height, stride.width}, {padding.height, padding.width}, {dilation.height, dilation.width}, groups};
}

}  // namespace

Tensor conv2d(const Tensor& given, const Tensor& weight, const Tensor& bias, const Conv2dSpec& spec) {
  if (amp::is_active()) return amp::lowered(conv2d, given, weight, bias, spec);
  if (given.ndim() == 3) return conv2d(given.unsqueeze(0), weight, bias, spec).squeeze(0);
  const ConvGeometry g = geometry_of(spec.stride, spec.padding, spec.dilation, spec.groups);
  check_forward(given, weight, bias, g);
  const Tensor x = given.contiguous(native(given) ? image_format(given) : MemoryFormat::kContiguous);
  const Tensor plain = weight.contiguous();
  const Tensor plain_bias = bias.defined() ? bias.contiguous() : bias;
  const bool relu = spec.activation == Activation::kRelu;
  Tensor y = convolve(x, plain, plain_bias, g, relu);
  return record("ConvolutionBackward0", {x, plain, plain_bias}, y, {x, plain, relu ? y : Tensor(), plain_bias},
                [g](const Pass& p) { backward(p, g); });
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dSpec& spec) {
  if (amp::is_active()) return amp::lowered(conv1d, x, weight, bias, spec);
  require(weight.ndim() == 3, "conv1d: the weight needs 3 dimensions, it is {}", weight.shape());
  require(x.ndim() == 2 || x.ndim() == 3,
          "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: {}", x.shape());
  Conv2dSpec wide = spec;
  wide.stride.height = wide.dilation.height = 1;
  wide.padding.height = 0;
  return conv2d(x.unsqueeze(-2), weight.unsqueeze(-2), bias, wide).squeeze(-2);
}

namespace {

// The gradient of a convolution from y-sized `x` to `shape`, as an operation of its own. Without recording.
Tensor transposed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& shape,
                  const ConvGeometry& g) {
  if (x.is_meta()) return Tensor::empty(shape, x.options());
  if (is_half(x.dtype())) return transposed(widened(x), widened(weight), widened(bias), shape, g).to(x.dtype());
  if (bias.defined()) return transposed(x, weight, {}, shape, g).add_(bias.view({1, -1, 1, 1}));
  if (native(x)) return kernels::conv2d_backward_input(x.contiguous(image_format(x)), weight, shape, g);
  const EnableGradGuard recording;
  const Tensor zeros = Tensor::zeros(shape, x.options()).set_requires_grad();
  const Tensor y = by_windows(zeros, weight.detach(), {}, g);
  return grad({&y, 1}, {&zeros, 1}, {x.detach()}).front();
}

}  // namespace

Tensor conv_transpose2d(const Tensor& given, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dSpec& spec) {
  if (amp::is_active()) return amp::lowered(conv_transpose2d, given, weight, bias, spec);
  if (given.ndim() == 3) return conv_transpose2d(given.unsqueeze(0), weight, bias, spec).squeeze(0);
  const ConvGeometry g = geometry_of(spec.stride, spec.padding, spec.dilation, spec.groups);
  check("conv_transpose2d", given, weight, bias, g);
  require(given.size(1) == weight.size(0),
          "Given transposed=1, weight of size {}, expected input{} to have {} channels, but got {} channels instead",
          weight.shape(), given.shape(), weight.size(0), given.size(1));
  Shape shape = {given.size(0), weight.size(1) * g.groups, 0, 0};
  const std::array<std::int64_t, 2> extra = {spec.output_padding.height, spec.output_padding.width};
  for (std::size_t i = 0; i < 2; ++i) {
    const int d = static_cast<int>(i) + 2;
    require(extra[i] < std::max(g.stride[i], g.dilation[i]),
            "output padding must be smaller than either stride or dilation, but got output_padding {}", extra[i]);
    shape[d] =
        (given.size(d) - 1) * g.stride[i] - 2 * g.padding[i] + g.dilation[i] * (weight.size(d) - 1) + extra[i] + 1;
    require(shape[d] >= 1, "Given input size {}, the calculated output size is too small", given.shape());
  }
  const Tensor x = given.contiguous(native(given) ? image_format(given) : MemoryFormat::kContiguous);
  const Tensor plain = weight.contiguous();
  const Tensor made = [&] {
    const NoGradGuard no_grad;
    return transposed(x, plain, bias, shape, g);
  }();
  return record("ConvolutionBackward0", {x, plain, bias}, made, {x, plain}, [g](const Pass& p) {
    const Conv2dSpec spec_of{
        {g.stride[0], g.stride[1]}, {g.padding[0], g.padding[1]}, {g.dilation[0], g.dilation[1]}, g.groups};
    if (p.needs(0)) p.give(0, conv2d(p.g(), p.saved(1), {}, spec_of));
    if (p.needs(2)) p.give(2, sum(p.g(), {0, 2, 3}));
    if (!p.needs(1)) return;
    if (!grad_enabled() && native(p.saved(0))) {
      p.give(1, kernels::conv2d_backward_weight(p.saved(0), p.g().contiguous(image_format(p.g())), p.saved(1).shape(),
                                                false, g)
                    .weight);
      return;
    }
    const bool create = grad_enabled();  // the weight's gradient is that of a convolution of g, weighted by x
    const EnableGradGuard recording;
    const Tensor w = create ? p.saved(1) : p.saved(1).detach().set_requires_grad();
    const Tensor through = by_windows(p.g(), w, {}, g);
    p.give(1, grad({&through, 1}, {&w, 1}, {p.saved(0)}, {.create_graph = create}).front());
  });
}

}  // namespace infeed::nn

// Pooling: by oneDNN for float32, else over the windows as a view.

#include <array>
#include <cmath>

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/replay.h"
#include "train/kernels/pool.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

using kernels::PoolGeometry;
constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;

PoolGeometry geometry_of(std::string_view op, const Tensor& x, Size2 kernel, Size2 stride, Size2 padding) {
  require(x.ndim() == 4, "{}(): Expected 3D or 4D (batch mode) tensor for input, but got: {}", op, x.shape());
  if (stride.height == 0 && stride.width == 0) stride = kernel;
  const PoolGeometry g{{kernel.height, kernel.width}, {stride.height, stride.width}, {padding.height, padding.width}};
  for (std::size_t i = 0; i < 2; ++i) {
    require(g.kernel[i] >= 1, "kernel size should be greater than zero, but got {}", g.kernel[i]);
    require(g.stride[i] >= 1, "stride should not be zero");
    require(g.padding[i] >= 0 && 2 * g.padding[i] <= g.kernel[i],
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation=1",
            g.padding[i], g.kernel[i]);
  }
  const Shape y = kernels::pool2d_shape(x.shape(), g);
  require(y[2] >= 1 && y[3] >= 1,
          "Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small", x.size(1),
          x.size(2), x.size(3), x.size(1), y[2], y[3]);
  return g;
}

bool native(const Tensor& x) { return x.dtype() == DType::kFloat32 && !x.is_meta() && x.numel() != 0; }

// [N, C, oh, ow, kh kw]
Tensor windows_of(const Tensor& x, const PoolGeometry& g, double padding_value) {
  const std::array<std::int64_t, 4> amounts = {g.padding[1], g.padding[1], g.padding[0], g.padding[0]};
  const Tensor padded =
      (g.padding[0] + g.padding[1] == 0 ? x : pad(x, amounts, PadMode::kConstant, padding_value)).contiguous();
  const Shape y = kernels::pool2d_shape(x.shape(), g);
  const Strides& s = padded.strides();
  return padded
      .as_strided({y[0], y[1], y[2], y[3], g.kernel[0], g.kernel[1]},
                  {s[0], s[1], s[2] * g.stride[0], s[3] * g.stride[1], s[2], s[3]})
      .flatten(4);
}

// Window i of `outputs` over `inputs`: [floor(i * inputs / outputs), ceil((i + 1) * inputs / outputs)).
Tensor adaptive_windows(const Tensor& x, int dim, std::int64_t outputs) {
  const std::int64_t inputs = x.size(dim);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t first = i * inputs / outputs;
    const std::int64_t last = ((i + 1) * inputs + outputs - 1) / outputs;
    parts.push_back(mean(x.narrow(dim, first, last - first), {dim}, true));
  }
  return cat(parts, dim);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride, Size2 padding) {
  if (x.ndim() == 3) return max_pool2d(x.unsqueeze(0), kernel, stride, padding).squeeze(0);
  const PoolGeometry g = geometry_of("max_pool2d", x, kernel, stride, padding);
  if (x.is_meta()) return Tensor::empty(kernels::pool2d_shape(x.shape(), g), x.options());
  if (!native(x)) return max(windows_of(x, g, -INFINITY), -1).values;
  const Tensor image = x.contiguous(kLast);
  const kernels::MaxPoolResult result = kernels::max_pool2d(image, g, needs_graph({image}));
  return record("MaxPool2DWithIndicesBackward0", {image}, result.y, {result.where},
                [shape = image.shape(), g](const Pass& p) {
                  require(!grad_enabled(), "max_pool2d can be differentiated once: its backward has no gradient");
                  return kernels::max_pool2d_backward(p.g().contiguous(kLast), p.saved(0), shape, g);
                });
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride, Size2 padding, bool count_include_pad) {
  if (x.ndim() == 3) return avg_pool2d(x.unsqueeze(0), kernel, stride, padding, count_include_pad).squeeze(0);
  const PoolGeometry g = geometry_of("avg_pool2d", x, kernel, stride, padding);
  if (x.is_meta()) return Tensor::empty(kernels::pool2d_shape(x.shape(), g), x.options());
  const bool padded = g.padding[0] + g.padding[1] != 0;
  if (!native(x) || (padded && count_include_pad) || (grad_enabled() && padded)) {
    const Tensor totals = sum(windows_of(x, g, 0.0), {-1});
    if (!padded || count_include_pad) return totals / static_cast<double>(g.kernel[0] * g.kernel[1]);
    const Tensor ones = Tensor::ones({1, 1, x.size(2), x.size(3)}, x.options());
    return totals / sum(windows_of(ones, g, 0.0), {-1});
  }
  const Tensor image = x.contiguous(kLast);
  return record(
      "AvgPool2DBackward0", {image}, kernels::avg_pool2d(image, g), {}, [shape = image.shape(), g](const Pass& p) {
        if (grad_enabled()) {  // linear: the backward of a sum of windows, which records itself
          const Tensor zeros = Tensor::zeros(shape, p.g().options()).set_requires_grad();
          const Tensor y = sum(windows_of(zeros, g, 0.0), {-1}) / static_cast<double>(g.kernel[0] * g.kernel[1]);
          return grad({&y, 1}, {&zeros, 1}, {p.g()}, {.create_graph = true}).front();
        }
        return kernels::avg_pool2d_backward(p.g().contiguous(kLast), shape, g);
      });
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output) {
  if (x.ndim() == 3) return adaptive_avg_pool2d(x.unsqueeze(0), output).squeeze(0);
  require(x.ndim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {}", x.shape());
  require(output.height >= 1 && output.width >= 1 && x.numel() != 0,
          "adaptive_avg_pool2d(): {} x {} windows of input {}; both need elements", output.height, output.width,
          x.shape());
  if (x.size(2) % output.height == 0 && x.size(3) % output.width == 0)
    return avg_pool2d(x, {x.size(2) / output.height, x.size(3) / output.width});
  return adaptive_windows(adaptive_windows(x, 2, output.height), 3, output.width);
}

}  // namespace infeed::nn

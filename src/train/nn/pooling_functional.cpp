#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/kernels/pool.h"
#include "train/nn/check_image.h"

namespace infeed::nn {
namespace {

using kernels::PoolGeometry;

struct MaxPoolBackward final : Node {
  MaxPoolBackward(const Tensor& where, const Shape& x, const PoolGeometry& g)
      : Node("max_pool2d"), x_shape(x), geometry(g) {
    save({where});
  }
  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Tensor grad = grads[0].contiguous(MemoryFormat::kChannelsLast);
    inputs[0] = kernels::max_pool2d_backward(grad, saved(0), x_shape, geometry);
  }
  Shape x_shape;
  PoolGeometry geometry;
};

struct AvgPoolBackward final : Node {
  AvgPoolBackward(const Shape& x, const PoolGeometry& g) : Node("avg_pool2d"), x_shape(x), geometry(g) {}
  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Tensor grad = grads[0].contiguous(MemoryFormat::kChannelsLast);
    inputs[0] = kernels::avg_pool2d_backward(grad, x_shape, geometry);
  }
  Shape x_shape;
  PoolGeometry geometry;
};

PoolGeometry geometry_of(std::string_view op, const Tensor& x, Size2 kernel, Size2 stride, Size2 padding) {
  check_image(op, x);
  if (stride.height == 0 && stride.width == 0) stride = kernel;
  const PoolGeometry g{{kernel.height, kernel.width}, {stride.height, stride.width}, {padding.height, padding.width}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (g.kernel[i] < 1 || g.stride[i] < 1 || g.padding[i] < 0 || 2 * g.padding[i] > g.kernel[i])
      throw ConfigError(fmt::format("{}: kernel {} and stride {} must be positive, padding {} at most half the kernel.",
                                    op, g.kernel[i], g.stride[i], g.padding[i]));
  }
  check_output(op, x.shape(), kernels::pool2d_shape(x.shape(), g));
  return g;
}

// Window i of `outputs` over `inputs`: [floor(i * inputs / outputs), ceil((i + 1) * inputs / outputs)).
Tensor adaptive_windows(const Tensor& x, int dim, std::int64_t outputs) {
  const std::int64_t inputs = x.size(dim);
  Tensor result;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t first = i * inputs / outputs;
    const std::int64_t last = ((i + 1) * inputs + outputs - 1) / outputs;
    Shape shape = x.shape();
    shape[dim] = outputs;
    Tensor mask = Tensor::zeros({outputs});
    mask.data<float>()[i] = 1.0f;
    Shape along(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1));
    along[dim] = outputs;
    const Tensor part = mean(x.narrow(dim, first, last - first), {dim}, true).expand(shape) * mask.view(along);
    result = result.defined() ? result + part : part;
  }
  return result;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride, Size2 padding) {
  const PoolGeometry geometry = geometry_of("max_pool2d", x, kernel, stride, padding);
  const Tensor image = x.contiguous(MemoryFormat::kChannelsLast);
  const bool recorded = needs_graph({image});
  const kernels::MaxPoolResult result = kernels::max_pool2d(image, geometry, recorded);
  if (recorded) connect(std::make_shared<MaxPoolBackward>(result.where, image.shape(), geometry), {image}, result.y);
  return result.y;
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride) {
  const PoolGeometry geometry = geometry_of("avg_pool2d", x, kernel, stride, 0);
  const Tensor image = x.contiguous(MemoryFormat::kChannelsLast);
  Tensor y = kernels::avg_pool2d(image, geometry);
  if (needs_graph({image})) connect(std::make_shared<AvgPoolBackward>(image.shape(), geometry), {image}, y);
  return y;
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output) {
  check_image("adaptive_avg_pool2d", x);
  if (output.height < 1 || output.width < 1 || x.numel() == 0)
    throw ConfigError(fmt::format("adaptive_avg_pool2d: {} x {} windows of input {}; both need elements.",
                                  output.height, output.width, x.shape().str()));
  if (x.size(2) % output.height == 0 && x.size(3) % output.width == 0)
    return avg_pool2d(x, {x.size(2) / output.height, x.size(3) / output.width});
  return adaptive_windows(adaptive_windows(x, 2, output.height), 3, output.width);
}

}  // namespace infeed::nn

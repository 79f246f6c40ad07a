// Pooling: by oneDNN where it computes the dtype, else over the windows as a view.

#include <array>
#include <cmath>

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/replay.h"
#include "train/autograd/result.h"
#include "train/kernels/dnnl_api.h"
#include "train/kernels/pool.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

using kernels::PoolGeometry;

PoolGeometry geometry_of(std::string_view op, const Tensor& x, Size2 kernel, const PoolSpec& spec) {
  require(x.ndim() == 4, "{}(): Expected 3D or 4D (batch mode) tensor for input, but got: {}", op, x.shape());
  const Size2 stride = spec.stride.height == 0 && spec.stride.width == 0 ? kernel : spec.stride;
  const PoolGeometry g{{kernel.height, kernel.width},
                       {stride.height, stride.width},
                       {spec.padding.height, spec.padding.width},
                       {spec.dilation.height, spec.dilation.width},
                       spec.ceil_mode};
  for (std::size_t i = 0; i < 2; ++i) {
    require(g.kernel[i] >= 1, "kernel size should be greater than zero, but got {}", g.kernel[i]);
    require(g.stride[i] >= 1, "stride should not be zero");
    require(g.dilation[i] >= 1, "dilation should be greater than zero, but got {}", g.dilation[i]);
    require(g.padding[i] >= 0 && 2 * g.padding[i] <= g.extent(i),
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
            g.padding[i], g.kernel[i], g.dilation[i]);
  }
  const Shape y = kernels::pool2d_shape(x.shape(), g);
  require(y[2] >= 1 && y[3] >= 1,
          "Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small", x.size(1),
          x.size(2), x.size(3), x.size(1), y[2], y[3]);
  return g;
}

bool native(const Tensor& x) {
  const bool computed = x.dtype() == DType::kFloat32 || (x.dtype() == DType::kBFloat16 && kernels::has_bfloat16());
  return computed && !x.is_meta() && x.numel() != 0;
}

// [N, C, oh, ow, kh kw]
Tensor windows_of(const Tensor& x, const PoolGeometry& g, double padding_value) {
  const Shape y = kernels::pool2d_shape(x.shape(), g);
  std::array<std::int64_t, 4> amounts;  // width before and after, height before and after
  for (std::size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int>(i) + 2;
    const std::int64_t covered = (y[dim] - 1) * g.stride[i] + g.extent(i);
    amounts[2 - 2 * i] = g.padding[i];
    amounts[3 - 2 * i] = std::max(g.padding[i], covered - x.size(dim) - g.padding[i]);
  }
  const bool fits = amounts == std::array<std::int64_t, 4>{};
  const Tensor padded = (fits ? x : pad(x, amounts, PadMode::kConstant, padding_value)).contiguous();
  const Strides& s = padded.strides();
  return padded
      .as_strided({y[0], y[1], y[2], y[3], g.kernel[0], g.kernel[1]},
                  {s[0], s[1], s[2] * g.stride[0], s[3] * g.stride[1], s[2] * g.dilation[0], s[3] * g.dilation[1]})
      .flatten(4);
}

// Elements of each window, [oh, ow]. `padded`: padding counts, what ceil_mode adds does not.
Tensor counts_of(const Tensor& x, const PoolGeometry& g, bool padded) {
  const Shape y = kernels::pool2d_shape(x.shape(), g);
  std::array<Tensor, 2> along;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int>(i) + 2;
    along[i] = Tensor::empty({y[dim]}, {DType::kFloat64, DeviceId{}});
    for (std::int64_t o = 0; o < y[dim]; ++o) {
      const std::int64_t first = o * g.stride[i] - g.padding[i];
      const std::int64_t end = std::min(first + g.kernel[i], x.size(dim) + (padded ? g.padding[i] : 0));
      along[i].data<double>()[o] = static_cast<double>(end - (padded ? first : std::max<std::int64_t>(first, 0)));
    }
  }
  return along[0].unsqueeze(1) * along[1];
}

// Padding does not count.
Tensor mean_of_windows(const Tensor& x, const PoolGeometry& g) {
  return sum(windows_of(x, g, 0.0), {-1}) / counts_of(x, g, false).to(x.options());
}

Tensor native_mean(const Tensor& x, const PoolGeometry& g) {
  const Tensor image = x.contiguous(image_format(x));
  return record("AvgPool2DBackward0", {image}, kernels::avg_pool2d(image, g), {},
                [shape = image.shape(), g](const Pass& p) {
                  if (!grad_enabled())
                    return kernels::avg_pool2d_backward(p.g().contiguous(image_format(p.g())), shape, g);
                  const Tensor zeros = Tensor::zeros(shape, p.g().options()).set_requires_grad();
                  const Tensor y = mean_of_windows(zeros, g);  // linear: anywhere the same derivative
                  return grad({&y, 1}, {&zeros, 1}, {p.g()}, {.create_graph = true}).front();
                });
}

// The place of each element in its image, [N, C, H, W].
Tensor places_of(const Tensor& x) {
  return Tensor::arange(x.size(2) * x.size(3)).view({1, 1, x.size(2), x.size(3)}).expand(x.shape());
}

using Reduce = ValuesAndIndices (*)(const ValuesAndIndices& part, int dim);

ValuesAndIndices largest(const ValuesAndIndices& part, int dim) {
  const ValuesAndIndices best = max(part.values, dim, true);
  return {best.values, gather(part.indices, dim, best.indices)};
}

ValuesAndIndices average(const ValuesAndIndices& part, int dim) { return {mean(part.values, {dim}, true), {}}; }

ValuesAndIndices over_windows(const ValuesAndIndices& x, int dim, std::int64_t outputs, Reduce reduce) {
  const std::int64_t inputs = x.values.size(dim);
  std::vector<Tensor> values, indices;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t first = i * inputs / outputs;
    const std::int64_t length = ((i + 1) * inputs + outputs - 1) / outputs - first;
    const auto part = [&](const Tensor& t) { return t.defined() ? t.narrow(dim, first, length) : t; };
    ValuesAndIndices result = reduce({part(x.values), part(x.indices)}, dim);
    values.push_back(std::move(result.values));
    indices.push_back(std::move(result.indices));
  }
  return {cat(values, dim), x.indices.defined() ? cat(indices, dim) : Tensor()};
}

void check_adaptive(std::string_view op, const Tensor& x, Size2 output) {
  require(x.ndim() == 4, "{}(): Expected 3D or 4D tensor, but got {}", op, x.shape());
  require(output.height >= 1 && output.width >= 1 && x.numel() != 0,
          "{}(): {} x {} windows of input {}; both need elements", op, output.height, output.width, x.shape());
}

// A row as an image of height 1.
struct Row {
  Row(std::string_view op, const Tensor& x) {
    require(x.ndim() == 2 || x.ndim() == 3, "{}() Expected 2D or 3D input tensor, but got {}", op, x.shape());
    image = x.unsqueeze(-2);
  }
  [[nodiscard]] static PoolSpec spec(std::int64_t kernel, PoolSpec spec) {
    spec.stride = {1, spec.stride.width == 0 ? kernel : spec.stride.width};
    spec.padding.height = 0;
    spec.dilation.height = 1;
    return spec;
  }
  Tensor image;
};

ValuesAndIndices meta_result(const Shape& shape, const Tensor& x) {
  return {Tensor::empty(shape, x.options()), Tensor::empty(shape, {DType::kInt64, x.device()})};
}

ValuesAndIndices squeezed(const ValuesAndIndices& found, int dim) {
  return {found.values.squeeze(dim), found.indices.squeeze(dim)};
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 kernel, const PoolSpec& spec) {
  if (x.ndim() == 3) return max_pool2d(x.unsqueeze(0), kernel, spec).squeeze(0);
  const PoolGeometry g = geometry_of("max_pool2d", x, kernel, spec);
  if (x.is_meta()) return Tensor::empty(kernels::pool2d_shape(x.shape(), g), x.options());
  if (!native(x) || g.dilation[0] * g.dilation[1] != 1) return max(windows_of(x, g, -INFINITY), -1).values;
  const Tensor image = x.contiguous(image_format(x));
  const kernels::MaxPoolResult result = kernels::max_pool2d(image, g, needs_graph({image}));
  return record("MaxPool2DWithIndicesBackward0", {image}, result.y, {result.where},
                [shape = image.shape(), g](const Pass& p) {
                  require(!grad_enabled(), "max_pool2d can be differentiated once: its backward has no gradient");
                  return kernels::max_pool2d_backward(p.g().contiguous(image_format(p.g())), p.saved(0), shape, g);
                });
}

ValuesAndIndices max_pool2d_with_indices(const Tensor& x, Size2 kernel, const PoolSpec& spec) {
  if (x.ndim() == 3) return squeezed(max_pool2d_with_indices(x.unsqueeze(0), kernel, spec), 0);
  const PoolGeometry g = geometry_of("max_pool2d", x, kernel, spec);
  if (x.is_meta()) return meta_result(kernels::pool2d_shape(x.shape(), g), x);
  return squeezed(largest({windows_of(x, g, -INFINITY), windows_of(places_of(x), g, 0.0)}, 4), 4);
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel, const PoolSpec& spec) {
  if (x.ndim() == 3) return avg_pool2d(x.unsqueeze(0), kernel, spec).squeeze(0);
  require(spec.divisor_override.value_or(1) != 0, "divisor must be not zero");
  const PoolGeometry g = geometry_of("avg_pool2d", x, kernel, spec);
  require(g.dilation[0] * g.dilation[1] == 1, "avg_pool2d: windows have no dilation");
  if (x.is_meta()) return Tensor::empty(kernels::pool2d_shape(x.shape(), g), x.options());
  const Tensor y = native(x) ? native_mean(x, g) : mean_of_windows(widened(x), g);
  const bool counts_differ = g.ceil_mode || g.padding[0] + g.padding[1] != 0;
  if (!spec.divisor_override && !(spec.count_include_pad && counts_differ)) return y.to(x.dtype());
  const Tensor wanted =
      spec.divisor_override ? Tensor(static_cast<double>(*spec.divisor_override)) : counts_of(x, g, true);
  return (y * (counts_of(x, g, false) / wanted).to(y.options())).to(x.dtype());
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output) {
  if (x.ndim() == 3) return adaptive_avg_pool2d(x.unsqueeze(0), output).squeeze(0);
  check_adaptive("adaptive_avg_pool2d", x, output);
  if (x.is_meta()) return Tensor::empty({x.size(0), x.size(1), output.height, output.width}, x.options());
  if (x.size(2) % output.height == 0 && x.size(3) % output.width == 0)
    return avg_pool2d(x, {x.size(2) / output.height, x.size(3) / output.width});
  const ValuesAndIndices rows = over_windows({widened(x), {}}, 2, output.height, average);
  return over_windows(rows, 3, output.width, average).values.to(x.dtype());
}

ValuesAndIndices adaptive_max_pool2d(const Tensor& x, Size2 output) {
  if (x.ndim() == 3) return squeezed(adaptive_max_pool2d(x.unsqueeze(0), output), 0);
  check_adaptive("adaptive_max_pool2d", x, output);
  if (x.is_meta()) return meta_result({x.size(0), x.size(1), output.height, output.width}, x);
  return over_windows(over_windows({x, places_of(x)}, 3, output.width, largest), 2, output.height, largest);
}

Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const PoolSpec& spec) {
  return max_pool2d(Row("max_pool1d", x).image, {1, kernel}, Row::spec(kernel, spec)).squeeze(-2);
}
ValuesAndIndices max_pool1d_with_indices(const Tensor& x, std::int64_t kernel, const PoolSpec& spec) {
  return squeezed(max_pool2d_with_indices(Row("max_pool1d", x).image, {1, kernel}, Row::spec(kernel, spec)), -2);
}
Tensor avg_pool1d(const Tensor& x, std::int64_t kernel, const PoolSpec& spec) {
  return avg_pool2d(Row("avg_pool1d", x).image, {1, kernel}, Row::spec(kernel, spec)).squeeze(-2);
}
Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output) {
  return adaptive_avg_pool2d(Row("adaptive_avg_pool1d", x).image, {1, output}).squeeze(-2);
}
ValuesAndIndices adaptive_max_pool1d(const Tensor& x, std::int64_t output) {
  return squeezed(adaptive_max_pool2d(Row("adaptive_max_pool1d", x).image, {1, output}), -2);
}

}  // namespace infeed::nn

#include "train/kernels/pool.h"

#include "train/kernels/on_device.h"
#include "train/kernels/primitive.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;

struct Problem {
  memory::desc x, y;
  memory::dims stride, kernel, padding_left, padding_right;

  Problem(const Shape& x_shape, const PoolGeometry& g, DType dtype) {
    const Shape y_shape = pool2d_shape(x_shape, g);
    x = describe(x_shape, channels_last_strides(x_shape), dtype);
    y = describe(y_shape, channels_last_strides(y_shape), dtype);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto dim = static_cast<int>(i) + 2;
      stride.push_back(g.stride[i]);
      kernel.push_back(g.kernel[i]);
      padding_left.push_back(g.padding[i]);
      padding_right.push_back((y_shape[dim] - 1) * g.stride[i] + g.kernel[i] - x_shape[dim] - g.padding[i]);
    }
  }

  [[nodiscard]] Forward::primitive_desc forward(dnnl::prop_kind kind, algorithm how) const {
#if DNNL_VERSION_MAJOR >= 3
    const memory::dims dilation(2, 0);
    return forward_desc<Forward>(user_scratchpad(), kind, how, x, y, stride, kernel, dilation, padding_left,
                                 padding_right);
#else
    return forward_desc<Forward>(user_scratchpad(), kind, how, x, y, stride, kernel, padding_left, padding_right);
#endif
  }

  [[nodiscard]] Backward::primitive_desc backward(algorithm how) const {
    const auto hint = forward(dnnl::prop_kind::forward_training, how);
#if DNNL_VERSION_MAJOR >= 3
    const memory::dims dilation(2, 0);
    return backward_desc<Backward>(hint, how, x, y, stride, kernel, dilation, padding_left, padding_right);
#else
    return backward_desc<Backward>(hint, how, x, y, stride, kernel, padding_left, padding_right);
#endif
  }
};

Key key_of(const Shape& x, const PoolGeometry& g, DType dtype, algorithm how, bool training) {
  Key key;
  key.add(x).add(static_cast<std::int64_t>(dtype)).add(static_cast<std::int64_t>(how));
  key.add(training ? 1 : 0).add(g.ceil_mode ? 1 : 0);
  for (std::size_t i = 0; i < 2; ++i) key.add(g.kernel[i]).add(g.stride[i]).add(g.padding[i]);
  return key;
}

struct Entry {
  Primitive primitive;
  std::int64_t where_bytes;  // 0: this variant has none
};

Entry make_forward(const Problem& problem, algorithm how, bool training) {
  const auto desc =
      problem.forward(training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, how);
  const auto where = desc.workspace_desc();
  const std::initializer_list<Primitive::Argument> all = {
      {DNNL_ARG_SRC, problem.x}, {DNNL_ARG_DST, problem.y}, {DNNL_ARG_WORKSPACE, where}};
  const std::initializer_list<Primitive::Argument> without = {{DNNL_ARG_SRC, problem.x}, {DNNL_ARG_DST, problem.y}};
  const auto bytes = static_cast<std::int64_t>(where.get_size());
  return {Primitive(Forward(desc), desc, bytes != 0 ? all : without), bytes};
}

Entry make_backward(const Problem& problem, algorithm how) {
  const auto desc = problem.backward(how);
  const auto where = desc.workspace_desc();
  const std::initializer_list<Primitive::Argument> all = {
      {DNNL_ARG_DIFF_DST, problem.y}, {DNNL_ARG_DIFF_SRC, problem.x}, {DNNL_ARG_WORKSPACE, where}};
  const std::initializer_list<Primitive::Argument> without = {{DNNL_ARG_DIFF_DST, problem.y},
                                                              {DNNL_ARG_DIFF_SRC, problem.x}};
  const auto bytes = static_cast<std::int64_t>(where.get_size());
  return {Primitive(Backward(desc), desc, bytes != 0 ? all : without), bytes};
}

MaxPoolResult pool_forward(const Tensor& x, const PoolGeometry& g, algorithm how, bool training) {
  thread_local Cache<Entry> cache;
  Entry& entry = cache.get(key_of(x.shape(), g, x.dtype(), how, training),
                           [&] { return make_forward(Problem(x.shape(), g, x.dtype()), how, training); });
  MaxPoolResult result{Tensor::empty(pool2d_shape(x.shape(), g), x.dtype(), MemoryFormat::kChannelsLast), {}};
  if (entry.where_bytes != 0) result.where = Tensor::empty({entry.where_bytes}, DType::kUInt8);
  entry.primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                       {DNNL_ARG_DST, result.y.data_ptr()},
                       {DNNL_ARG_WORKSPACE, entry.where_bytes != 0 ? result.where.data_ptr() : nullptr}});
  return result;
}

Tensor pool_backward(const Tensor& grad, const Tensor& where, const Shape& x_shape, const PoolGeometry& g,
                     algorithm how) {
  thread_local Cache<Entry> cache;
  Entry& entry = cache.get(key_of(x_shape, g, grad.dtype(), how, true),
                           [&] { return make_backward(Problem(x_shape, g, grad.dtype()), how); });
  Tensor x_grad = Tensor::empty(x_shape, grad.dtype(), MemoryFormat::kChannelsLast);
  entry.primitive.run({{DNNL_ARG_DIFF_DST, grad.data_ptr()},
                       {DNNL_ARG_DIFF_SRC, x_grad.data_ptr()},
                       {DNNL_ARG_WORKSPACE, where.defined() ? where.data_ptr() : nullptr}});
  return x_grad;
}

}  // namespace

Shape pool2d_shape(const Shape& x, const PoolGeometry& g) {
  Shape y = {x[0], x[1], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int>(i) + 2;
    const std::int64_t room = x[dim] + 2 * g.padding[i] - g.extent(i) + (g.ceil_mode ? g.stride[i] - 1 : 0);
    y[dim] = room < 0 ? 0 : room / g.stride[i] + 1;
    if (g.ceil_mode && (y[dim] - 1) * g.stride[i] >= x[dim] + g.padding[i]) --y[dim];
  }
  return y;
}

MaxPoolResult max_pool2d(const Tensor& x, const PoolGeometry& geometry, bool training) {
  if (is_on_device(x)) return on_device::max_pool2d(x, geometry);
  return pool_forward(x, geometry, algorithm::pooling_max, training);
}

Tensor max_pool2d_backward(const Tensor& grad, const Tensor& where, const Shape& x_shape,
                           const PoolGeometry& geometry) {
  if (is_on_device(grad)) return on_device::max_pool2d_backward(grad, where, x_shape, geometry);
  return pool_backward(grad, where, x_shape, geometry, algorithm::pooling_max);
}

Tensor avg_pool2d(const Tensor& x, const PoolGeometry& geometry) {
  if (is_on_device(x)) return on_device::avg_pool2d(x, geometry);
  return pool_forward(x, geometry, algorithm::pooling_avg_exclude_padding, false).y;
}

Tensor avg_pool2d_backward(const Tensor& grad, const Shape& x_shape, const PoolGeometry& geometry) {
  if (is_on_device(grad)) return on_device::avg_pool2d_backward(grad, x_shape, geometry);
  return pool_backward(grad, {}, x_shape, geometry, algorithm::pooling_avg_exclude_padding);
}

}  // namespace infeed::kernels

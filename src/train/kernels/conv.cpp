#include "train/kernels/conv.h"

#include "infeed/train/tensor/storage.h"
#include "train/kernels/on_device.h"
#include "train/kernels/primitive.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

using dnnl::memory;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Everything that oneDNN must know about one convolution.
struct Problem {
  memory::desc x, y, weight, weight_any, bias;  // weight: as the tensor lies; weight_any: as oneDNN likes
  memory::dims stride, dilation, padding_left, padding_right;
  bool with_bias;

  Problem(const Shape& x_shape, const Shape& w, const ConvGeometry& g, bool has_bias, DType dtype)
      : with_bias(has_bias) {
    const Shape y_shape = conv2d_shape(x_shape, w, g);
    const auto type = to_dnnl(dtype);
    x = describe(x_shape, channels_last_strides(x_shape), dtype);
    y = describe(y_shape, channels_last_strides(y_shape), dtype);
    const memory::dims w_dims = g.groups == 1 ? memory::dims{w[0], w[1], w[2], w[3]}
                                              : memory::dims{g.groups, w[0] / g.groups, w[1], w[2], w[3]};
    weight = memory::desc(w_dims, type, g.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw);
    weight_any = memory::desc(w_dims, type, memory::format_tag::any);
    bias = has_bias ? memory::desc({w[0]}, type, memory::format_tag::a) : memory::desc();
    for (std::size_t i = 0; i < 2; ++i) {
      stride.push_back(g.stride[i]);
      dilation.push_back(g.dilation[i] - 1);  // oneDNN counts the gaps
      padding_left.push_back(g.padding[i]);
      const auto dim = static_cast<int>(i) + 2;
      const std::int64_t covered = (y_shape[dim] - 1) * g.stride[i] + (w[dim] - 1) * g.dilation[i] + 1;
      padding_right.push_back(covered - x_shape[dim] - g.padding[i]);  // negative: the last columns are not read
    }
  }

  [[nodiscard]] Forward::primitive_desc forward(bool relu) const {
    return forward_desc<Forward>(with_relu(relu), dnnl::prop_kind::forward_training, kDirect, x, weight_any, bias, y,
                                 stride, dilation, padding_left, padding_right);
  }
};

Key key_of(const Shape& x, const Shape& weight, const ConvGeometry& g, int variant, DType dtype) {
  Key key;
  key.add(static_cast<std::int64_t>(dtype)).add(x).add(weight).add(g.groups).add(variant);
  for (std::size_t i = 0; i < 2; ++i) key.add(g.stride[i]).add(g.padding[i]).add(g.dilation[i]);
  return key;
}

// A primitive and the way of the weights to or from the layout it uses.
struct Entry {
  Primitive primitive;
  Relayout weight;
};

Entry make_forward(const Problem& problem, bool relu) {
  const auto desc = problem.forward(relu);
  const std::initializer_list<Primitive::Argument> with_bias = {{DNNL_ARG_SRC, problem.x},
                                                                {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                                {DNNL_ARG_BIAS, problem.bias},
                                                                {DNNL_ARG_DST, problem.y}};
  const std::initializer_list<Primitive::Argument> without_bias = {
      {DNNL_ARG_SRC, problem.x}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, problem.y}};
  return {Primitive(Forward(desc), desc, problem.with_bias ? with_bias : without_bias),
          Relayout(problem.weight, desc.weights_desc())};
}

Entry make_backward_data(const Problem& problem) {
  const auto hint = problem.forward(false);
  const auto desc = backward_desc<BackwardData>(hint, kDirect, problem.x, problem.weight_any, problem.y, problem.stride,
                                                problem.dilation, problem.padding_left, problem.padding_right);
  return {
      Primitive(
          BackwardData(desc), desc,
          {{DNNL_ARG_DIFF_DST, problem.y}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DIFF_SRC, problem.x}}),
      Relayout(problem.weight, desc.weights_desc())};
}

Entry make_backward_weights(const Problem& problem) {
  const auto hint = problem.forward(false);
  const auto desc =
      backward_desc<BackwardWeights>(hint, kDirect, problem.x, problem.weight_any, problem.bias, problem.y,
                                     problem.stride, problem.dilation, problem.padding_left, problem.padding_right);
  const std::initializer_list<Primitive::Argument> with_bias = {{DNNL_ARG_SRC, problem.x},
                                                                {DNNL_ARG_DIFF_DST, problem.y},
                                                                {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                                                                {DNNL_ARG_DIFF_BIAS, problem.bias}};
  const std::initializer_list<Primitive::Argument> without_bias = {
      {DNNL_ARG_SRC, problem.x}, {DNNL_ARG_DIFF_DST, problem.y}, {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}};
  return {Primitive(BackwardWeights(desc), desc, problem.with_bias ? with_bias : without_bias),
          Relayout(desc.diff_weights_desc(), problem.weight)};
}

// The weights where the primitive wants them: the tensor itself, or a copy in `holder`.
const void* laid_out(Relayout& relayout, const Tensor& weight, std::unique_ptr<Storage>& holder) {
  if (!relayout.needed()) return weight.data_ptr();
  holder = std::make_unique<Storage>(relayout.nbytes(), host_allocator());
  relayout.run(weight.data_ptr(), holder->data());
  return holder->data();
}

}  // namespace

Shape conv2d_shape(const Shape& x, const Shape& weight, const ConvGeometry& g) {
  Shape y = {x[0], weight[0], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int>(i) + 2;
    const std::int64_t room = x[dim] + 2 * g.padding[i] - g.dilation[i] * (weight[dim] - 1) - 1;
    y[dim] = room < 0 ? 0 : room / g.stride[i] + 1;
  }
  return y;
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g, bool relu) {
  if (is_on_device(x)) return on_device::conv2d(x, weight, bias, g, relu);
  thread_local Cache<Entry> cache;
  const bool with_bias = bias.defined();
  Entry& entry = cache.get(key_of(x.shape(), weight.shape(), g, (with_bias ? 1 : 0) + (relu ? 2 : 0), x.dtype()), [&] {
    return make_forward(Problem(x.shape(), weight.shape(), g, with_bias, x.dtype()), relu);
  });
  Tensor y = Tensor::empty(conv2d_shape(x.shape(), weight.shape(), g), x.dtype(), MemoryFormat::kChannelsLast);
  std::unique_ptr<Storage> holder;
  entry.primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                       {DNNL_ARG_WEIGHTS, laid_out(entry.weight, weight, holder)},
                       {DNNL_ARG_BIAS, with_bias ? bias.data_ptr() : nullptr},
                       {DNNL_ARG_DST, y.data_ptr()}});
  return y;
}

Tensor conv2d_backward_input(const Tensor& grad, const Tensor& weight, const Shape& x_shape, const ConvGeometry& g) {
  if (is_on_device(grad)) return on_device::conv2d_backward_input(grad, weight, x_shape, g);
  thread_local Cache<Entry> cache;
  Entry& entry = cache.get(key_of(x_shape, weight.shape(), g, 0, grad.dtype()), [&] {
    return make_backward_data(Problem(x_shape, weight.shape(), g, false, grad.dtype()));
  });
  Tensor x_grad = Tensor::empty(x_shape, grad.dtype(), MemoryFormat::kChannelsLast);
  std::unique_ptr<Storage> holder;
  entry.primitive.run({{DNNL_ARG_DIFF_DST, grad.data_ptr()},
                       {DNNL_ARG_WEIGHTS, laid_out(entry.weight, weight, holder)},
                       {DNNL_ARG_DIFF_SRC, x_grad.data_ptr()}});
  return x_grad;
}

ConvWeightGrads conv2d_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_shape, bool with_bias,
                                       const ConvGeometry& g) {
  if (is_on_device(grad)) return on_device::conv2d_backward_weight(grad, x, weight_shape, with_bias, g);
  thread_local Cache<Entry> cache;
  Entry& entry = cache.get(key_of(x.shape(), weight_shape, g, with_bias ? 1 : 0, x.dtype()), [&] {
    return make_backward_weights(Problem(x.shape(), weight_shape, g, with_bias, x.dtype()));
  });
  ConvWeightGrads grads{Tensor::empty(weight_shape, x.dtype()),
                        with_bias ? Tensor::empty({weight_shape[0]}, x.dtype()) : Tensor()};
  std::unique_ptr<Storage> holder;
  std::byte* computed = grads.weight.data_ptr();
  if (entry.weight.needed()) {
    holder = std::make_unique<Storage>(entry.primitive.desc(DNNL_ARG_DIFF_WEIGHTS).get_size(), host_allocator());
    computed = holder->data();
  }
  entry.primitive.run({{DNNL_ARG_SRC, x.data_ptr()},
                       {DNNL_ARG_DIFF_DST, grad.data_ptr()},
                       {DNNL_ARG_DIFF_WEIGHTS, computed},
                       {DNNL_ARG_DIFF_BIAS, with_bias ? grads.bias.data_ptr() : nullptr}});
  if (entry.weight.needed()) entry.weight.run(computed, grads.weight.data_ptr());
  return grads;
}

}  // namespace infeed::kernels

// The network of pictures: convolutions, batch norms and pooling, as oneDNN has them.
#include <memory>

#include "bare.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/reduce.h"
#include "works.h"

namespace bench {
namespace {

using dnnl::memory;
using kernels::BinaryOp;
using kernels::describe;
using kernels::Primitive;
using kernels::UnaryOp;

Tensor image(const Shape& shape) { return buffer(shape).contiguous(infeed::MemoryFormat::kChannelsLast); }

/// A place in the network: values and their gradient.
struct Stage {
  Tensor y, g;
};
Stage stage(const Shape& shape) { return {image(shape), image(shape)}; }

template <class Desc>
void reorder(Bare& list, const Tensor& from, const memory::desc& from_desc, const Tensor& to, const Desc& to_desc) {
  if (from_desc == memory::desc(to_desc)) return;
  const dnnl::reorder::primitive_desc desc(kernels::cpu_engine(), from_desc, kernels::cpu_engine(), to_desc,
                                           kernels::user_scratchpad());
  list.run(Primitive(dnnl::reorder(desc), desc, {{DNNL_ARG_FROM, from_desc}, {DNNL_ARG_TO, to_desc}}),
           {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

// Weights in whatever layout oneDNN likes, reordered from and to the plain one, as every way must.
Stage convolve(Bare& list, const Stage& x, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t side = x.y.size(2) / stride, p = kernel / 2;
  Stage y = stage({kImages, out, side, side});
  const Tensor w = buffer({out, x.y.size(1), kernel, kernel}), w_grad = list.weight(w);
  const memory::dims steps{stride, stride}, gaps{0, 0}, before{p, p}, behind{p - stride + 1, p - stride + 1};
  const auto plain = describe(w), xd = describe(x.y), yd = describe(y.y);
  const memory::desc any(plain.dims(), memory::data_type::f32, memory::format_tag::any);
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto forward = kernels::forward_desc<dnnl::convolution_forward>(
      kernels::user_scratchpad(), dnnl::prop_kind::forward_training, direct, xd, any, yd, steps, gaps, before, behind);
  const auto kept = [&](const memory::desc& desc) {
    return desc == plain ? w : buffer({static_cast<std::int64_t>(desc.get_size() / sizeof(float))});
  };
  const Tensor laid = kept(forward.weights_desc());
  reorder(list, w, plain, laid, forward.weights_desc());
  list.run(Primitive(dnnl::convolution_forward(forward), forward,
                     {{DNNL_ARG_SRC, xd}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, yd}}),
           {{DNNL_ARG_SRC, x.y}, {DNNL_ARG_WEIGHTS, laid}, {DNNL_ARG_DST, y.y}});
  list.later([=, &list] {
    if (x.g.defined()) {
      const auto desc = kernels::backward_desc<dnnl::convolution_backward_data>(forward, direct, xd, any, yd, steps,
                                                                                gaps, before, behind);
      const Tensor turned = kept(desc.weights_desc());
      reorder(list, w, plain, turned, desc.weights_desc());
      list.run(Primitive(dnnl::convolution_backward_data(desc), desc,
                         {{DNNL_ARG_DIFF_DST, yd}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DIFF_SRC, xd}}),
               {{DNNL_ARG_DIFF_DST, y.g}, {DNNL_ARG_WEIGHTS, turned}, {DNNL_ARG_DIFF_SRC, x.g}});
    }
    const auto desc = kernels::backward_desc<dnnl::convolution_backward_weights>(forward, direct, xd, any, yd, steps,
                                                                                 gaps, before, behind);
    const Tensor made = kept(desc.diff_weights_desc());
    list.run(
        Primitive(dnnl::convolution_backward_weights(desc), desc,
                  {{DNNL_ARG_SRC, xd}, {DNNL_ARG_DIFF_DST, yd}, {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}}),
        {{DNNL_ARG_SRC, x.y}, {DNNL_ARG_DIFF_DST, y.g}, {DNNL_ARG_DIFF_WEIGHTS, made}});
    reorder(list, made, desc.diff_weights_desc(), w_grad, plain);
  });
  return y;
}

using NormForward = dnnl::batch_normalization_forward;
using NormBackward = dnnl::batch_normalization_backward;

NormForward::primitive_desc norm_forward(const memory::desc& xd, dnnl::normalization_flags flags) {
  const auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return kernels::forward_desc<NormForward>(kernels::user_scratchpad(), kind, xd, xd, 1e-5f, flags);
#else
  return kernels::forward_desc<NormForward>(kernels::user_scratchpad(), kind, xd, 1e-5f, flags);
#endif
}

NormBackward::primitive_desc norm_backward(const NormForward::primitive_desc& forward, const memory::desc& xd,
                                           dnnl::normalization_flags flags) {
  const auto kind = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR >= 3
  return kernels::backward_desc<NormBackward>(forward, kind, xd, xd, xd, 1e-5f, flags);
#else
  return kernels::backward_desc<NormBackward>(forward, kind, xd, xd, 1e-5f, flags);
#endif
}

struct Norm {
  Stage x, y;
  Tensor scale, shift, mean, var, scale_grad, shift_grad, mask;
  memory::desc mask_desc;
};

void run_forward(Bare& list, const Norm& n, const NormForward::primitive_desc& desc) {
  const auto xd = describe(n.x.y), c = describe(n.scale);
  list.run(Primitive(NormForward(desc), desc,
                     {{DNNL_ARG_SRC, xd},
                      {DNNL_ARG_DST, xd},
                      {DNNL_ARG_SCALE, c},
                      {DNNL_ARG_SHIFT, c},
                      {DNNL_ARG_MEAN, c},
                      {DNNL_ARG_VARIANCE, c},
                      {DNNL_ARG_WORKSPACE, n.mask_desc}}),
           {{DNNL_ARG_SRC, n.x.y},
            {DNNL_ARG_DST, n.y.y},
            {DNNL_ARG_SCALE, n.scale},
            {DNNL_ARG_SHIFT, n.shift},
            {DNNL_ARG_MEAN, n.mean},
            {DNNL_ARG_VARIANCE, n.var},
            {DNNL_ARG_WORKSPACE, n.mask}});
}

void run_backward(Bare& list, const Norm& n, const NormBackward::primitive_desc& desc) {
  const auto xd = describe(n.x.y), c = describe(n.scale);
  list.run(Primitive(NormBackward(desc), desc,
                     {{DNNL_ARG_SRC, xd},
                      {DNNL_ARG_DIFF_DST, xd},
                      {DNNL_ARG_DIFF_SRC, xd},
                      {DNNL_ARG_SCALE, c},
                      {DNNL_ARG_SHIFT, c},
                      {DNNL_ARG_MEAN, c},
                      {DNNL_ARG_VARIANCE, c},
                      {DNNL_ARG_DIFF_SCALE, c},
                      {DNNL_ARG_DIFF_SHIFT, c},
                      {DNNL_ARG_WORKSPACE, n.mask_desc}}),
           {{DNNL_ARG_SRC, n.x.y},
            {DNNL_ARG_DIFF_DST, n.y.g},
            {DNNL_ARG_DIFF_SRC, n.x.g},
            {DNNL_ARG_SCALE, n.scale},
            {DNNL_ARG_SHIFT, n.shift},
            {DNNL_ARG_MEAN, n.mean},
            {DNNL_ARG_VARIANCE, n.var},
            {DNNL_ARG_DIFF_SCALE, n.scale_grad},
            {DNNL_ARG_DIFF_SHIFT, n.shift_grad},
            {DNNL_ARG_WORKSPACE, n.mask}});
}

Stage normalise(Bare& list, const Stage& x, bool relu) {
  using dnnl::normalization_flags;
  const auto xd = describe(x.y);
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  if (relu) flags = flags | normalization_flags::fuse_norm_relu;
  const auto forward = norm_forward(xd, flags);
  const auto backward = norm_backward(forward, xd, flags);
  const Shape channels{x.y.size(1)};
  Norm n{.x = x,
         .y = stage(x.y.shape()),
         .scale = buffer(channels),
         .shift = buffer(channels),
         .mean = buffer(channels),
         .var = buffer(channels)};
  n.scale_grad = list.weight(n.scale);
  n.shift_grad = list.weight(n.shift);
  const auto md = forward.workspace_desc();  // unused without ReLU
  n.mask = Tensor::zeros({static_cast<std::int64_t>(md.get_size()) + 1}, infeed::DType::kUInt8);
  n.mask_desc = relu ? md : describe(n.scale);
  run_forward(list, n, forward);
  list.later([=, &list] { run_backward(list, n, backward); });
  return n.y;
}

// Windows of 3, steps of 2.
Stage pool(Bare& list, const Stage& x) {
  Stage y = stage({kImages, x.y.size(1), x.y.size(2) / 2, x.y.size(3) / 2});
  const auto xd = describe(x.y), yd = describe(y.y);
  const auto how = dnnl::algorithm::pooling_max;
  const memory::dims steps{2, 2}, kernel{3, 3}, gaps{0, 0}, before{1, 1}, behind{0, 0};
  const auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  const auto forward = kernels::forward_desc<dnnl::pooling_forward>(kernels::user_scratchpad(), kind, how, xd, yd,
                                                                    steps, kernel, gaps, before, behind);
  const auto desc =
      kernels::backward_desc<dnnl::pooling_backward>(forward, how, xd, yd, steps, kernel, gaps, before, behind);
#else
  const auto forward = kernels::forward_desc<dnnl::pooling_forward>(kernels::user_scratchpad(), kind, how, xd, yd,
                                                                    steps, kernel, before, behind);
  const auto desc = kernels::backward_desc<dnnl::pooling_backward>(forward, how, xd, yd, steps, kernel, before, behind);
#endif
  const auto md = forward.workspace_desc();
  const Tensor where = Tensor::zeros({static_cast<std::int64_t>(md.get_size())}, infeed::DType::kUInt8);
  list.run(Primitive(dnnl::pooling_forward(forward), forward,
                     {{DNNL_ARG_SRC, xd}, {DNNL_ARG_DST, yd}, {DNNL_ARG_WORKSPACE, md}}),
           {{DNNL_ARG_SRC, x.y}, {DNNL_ARG_DST, y.y}, {DNNL_ARG_WORKSPACE, where}});
  list.later([=, &list] {
    list.run(Primitive(dnnl::pooling_backward(desc), desc,
                       {{DNNL_ARG_DIFF_DST, yd}, {DNNL_ARG_DIFF_SRC, xd}, {DNNL_ARG_WORKSPACE, md}}),
             {{DNNL_ARG_DIFF_DST, y.g}, {DNNL_ARG_DIFF_SRC, x.g}, {DNNL_ARG_WORKSPACE, where}});
  });
  return y;
}

// Adds the shortcut to the body and clips at 0, both ways.
Stage block(Bare& list, const Stage& x, std::int64_t out, std::int64_t stride) {
  Stage added = stage({kImages, out, x.y.size(2) / stride, x.y.size(3) / stride});
  const Stage middle = normalise(list, convolve(list, x, out, 3, stride), true);
  const Stage body = normalise(list, convolve(list, middle, out, 3, 1), false);
  Stage way = x;
  if (out != x.y.size(1)) {
    const Stage narrow{x.y, image(x.y.shape())};
    list.later([=, &list] { list.call([=] { kernels::binary(BinaryOp::kAdd, x.g, x.g, narrow.g); }); });
    way = normalise(list, convolve(list, narrow, out, 1, stride), false);
  } else {
    list.later([=, &list] { list.call([=] { kernels::binary(BinaryOp::kAdd, x.g, x.g, added.g); }); });
  }
  list.call([=] {
    kernels::binary(BinaryOp::kAdd, added.y, body.y, way.y);
    kernels::unary(UnaryOp::kRelu, added.y, added.y);
  });
  list.later([=, &list] { list.call([=] { kernels::binary(BinaryOp::kReluGrad, body.g, added.g, added.y); }); });
  return added;
}

}  // namespace

void list_resnet(Bare& list, const Tensor& labels) {
  Stage x{image({kImages, 3, kSide, kSide}), {}};
  x = pool(list, normalise(list, convolve(list, x, 32, 3, 1), true));
  x = block(list, x, 32, 1);
  x = block(list, x, 64, 2);
  x = block(list, x, 128, 2);
  const Tensor features = buffer({kImages, 128}), features_grad = buffer({kImages, 128});
  list.call([=] { (void)kernels::sum_keepdim(x.y, {2, 3}); });
  list.later([=, &list] {
    list.call([=] {
      kernels::binary(BinaryOp::kMul, x.g, features_grad.view({kImages, 128, 1, 1}), Tensor(1.0 / 64));
    });
  });
  const auto last = list.linear(features, kClasses, features_grad);
  list.loss(last.y, last.g, labels);
  list.list_backward();
}

}  // namespace bench

// What a step must at least do. A list of calls is built once; a step makes them in order.
#include <cstring>
#include <memory>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/optim/fused.h"
#include "train/kernels/cross_entropy.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/layer_norm.h"
#include "train/kernels/primitive.h"
#include "train/kernels/reduce.h"
#include "train/kernels/softmax.h"
#include "train/tensor/impl.h"
#include "works.h"

namespace bench {
namespace {

using infeed::Dims;
using infeed::Shape;
using infeed::Tensor;
namespace kernels = infeed::kernels;
using dnnl::memory;
using kernels::BinaryOp;
using kernels::describe;
using kernels::Primitive;
using kernels::UnaryOp;

Tensor buffer(const Shape& shape) { return Tensor::uniform(shape, -0.1, 0.1); }
Tensor image(const Shape& shape) { return buffer(shape).contiguous(infeed::MemoryFormat::kChannelsLast); }

class Bare {
 public:
  void operator()() const {
    const infeed::NoGradGuard no_grad;
    for (const auto& call : calls_) call();
    infeed::optim::sgd_step(rows_, {.lr = 0.0, .momentum = 0.9});
  }

  /// A weight: its gradient, which the optimizer reads.
  Tensor weight(const Tensor& w) {
    rows_.push_back({w, Tensor::zeros(w.shape()), Tensor::zeros(w.shape()), false});
    return rows_.back().grad;
  }
  void call(std::function<void()> what) { calls_.push_back(std::move(what)); }

  void product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias = {}, bool relu = false) {
    const auto x = describe(a), y = describe(b), z = describe(out);
    if (!bias.defined()) {
      const auto desc = kernels::forward_desc<dnnl::matmul>(kernels::with_relu(relu), x, y, z);
      return run(Primitive(dnnl::matmul(desc), desc, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, y}, {DNNL_ARG_DST, z}}),
                 {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, out}});
    }
    const auto of_bias = describe(Shape{1, bias.numel()}, infeed::Strides{bias.numel(), 1});
    const auto desc = kernels::forward_desc<dnnl::matmul>(kernels::with_relu(relu), x, y, of_bias, z);
    run(Primitive(dnnl::matmul(desc), desc,
                  {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, y}, {DNNL_ARG_BIAS, of_bias}, {DNNL_ARG_DST, z}}),
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, out}});
  }

  /// x [rows, in] -> [rows, out]; g: the gradient of the result.
  struct Linear {
    Tensor y, g;
  };
  Linear linear(const Tensor& x, std::int64_t out, const Tensor& x_grad, bool relu = false) {
    const Tensor w = buffer({out, x.size(1)}), b = buffer({out});
    const Linear made{buffer({x.size(0), out}), buffer({x.size(0), out})};
    const Tensor w_grad = weight(w), b_grad = weight(b);
    product(made.y, x, w.t(), b, relu);
    backward_.push_back([=, this] {
      if (relu) call([=] { kernels::binary(BinaryOp::kReluGrad, made.g, made.g, made.y); });
      if (x_grad.defined()) product(x_grad, made.g, w);
      product(w_grad, made.g.t(), x);
      call([=] { (void)kernels::sum_keepdim(made.g, {0}); });
    });
    return made;
  }

  void loss(const Tensor& logits, const Tensor& g, const Tensor& labels) {
    call([=] {
      const auto [value, normalise] = kernels::cross_entropy(logits, labels, {-100, 0.0});
      const Tensor grad = kernels::cross_entropy_backward(1.0f, logits, normalise, labels, {-100, 0.0});
      std::memcpy(g.data_ptr(), grad.data_ptr(), g.nbytes());
    });
  }

  void run(Primitive primitive, std::vector<std::pair<int, Tensor>> arguments) {
    std::vector<Primitive::Value> values;
    for (const auto& [id, tensor] : arguments) values.push_back({id, tensor.data_ptr()});
    const auto kept = std::make_shared<Primitive>(std::move(primitive));
    call([kept, values, arguments] { kept->run(values); });
  }

  void later(std::function<void()> backward) { backward_.push_back(std::move(backward)); }
  /// Forward is listed; now what was put off, last first.
  void list_backward() {
    for (; !backward_.empty(); backward_.pop_back()) backward_.back()();
  }

 private:
  std::vector<std::function<void()>> calls_, backward_;
  std::vector<infeed::optim::SgdRow> rows_;
};

void list_mlp(Bare& list, const Tensor& labels) {
  const Tensor x = buffer({kRows, kPixels});
  const auto first = list.linear(x, kHidden, {}, true);
  const auto second = list.linear(first.y, kHidden, first.g, true);
  const auto last = list.linear(second.y, kClasses, second.g);
  list.loss(last.y, last.g, labels);
  list.list_backward();
}

// ---- Transformer ----

constexpr std::int64_t kAll = kSequences * kTokens;

Tensor normalised(Bare& list, const Tensor& x, const Tensor& y_grad, const Tensor& x_grad) {
  const Tensor y = buffer(x.shape()), w = buffer({kWidth}), b = buffer({kWidth});
  const Tensor w_grad = list.weight(w), b_grad = list.weight(b);
  const auto made = std::make_shared<kernels::LayerNormResult>();
  list.call([=] { *made = kernels::layer_norm(x, w, b, 1e-5); });
  list.later([=, &list] {
    list.call([=] {
      const auto grads = kernels::layer_norm_backward(y_grad, x, w, made->mean, made->inverse);
      kernels::binary(BinaryOp::kAdd, x_grad, x_grad, grads.x);
    });
  });
  return y;
}

// Of q, k, v as parts of one [rows, 3 width].
void attend(Bare& list, const Tensor& qkv, const Tensor& qkv_grad, const Tensor& mixed, const Tensor& mixed_grad) {
  const auto part = [](const Tensor& t, std::int64_t i) {
    return t.view({kSequences, kTokens, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).select(0, i);
  };
  const auto heads = [](const Tensor& t) {
    return t.view({kSequences, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2);
  };
  const Shape square{kSequences, kHeads, kTokens, kTokens};
  const Tensor scores = buffer(square), probs = buffer(square);
  list.product(scores, part(qkv, 0), part(qkv, 1).transpose(-2, -1));
  list.call([=] { (void)kernels::softmax(scores); });
  list.product(heads(mixed), probs, part(qkv, 2));
  list.later([=, &list] {
    const Tensor probs_grad = buffer(square);
    list.product(part(qkv_grad, 2), probs.transpose(-2, -1), heads(mixed_grad));
    list.product(probs_grad, heads(mixed_grad), part(qkv, 2).transpose(-2, -1));
    list.call([=] { (void)kernels::softmax_backward(probs_grad, probs); });
    list.product(part(qkv_grad, 0), scores, part(qkv, 1));
    list.product(part(qkv_grad, 1), scores.transpose(-2, -1), part(qkv, 0));
  });
}

// Adds what the layer makes of x to x; its gradient goes to x_grad, which holds y's.
void list_layer(Bare& list, const Tensor& x, const Tensor& x_grad) {
  const auto add = [&list](const Tensor& to, const Tensor& what) {
    list.call([=] { kernels::binary(BinaryOp::kAdd, to, to, what); });
  };
  const Tensor grad1 = buffer(x.shape()), grad2 = buffer(x.shape());
  const Tensor in1 = normalised(list, x, grad1, x_grad);
  const auto qkv = list.linear(in1, 3 * kWidth, grad1);
  const Tensor mixed = buffer(x.shape()), mixed_grad = buffer(x.shape());
  attend(list, qkv.y, qkv.g, mixed, mixed_grad);
  add(x, list.linear(mixed, kWidth, mixed_grad).y);
  const Tensor in2 = normalised(list, x, grad2, x_grad);
  const auto up = list.linear(in2, 4 * kWidth, grad2);
  const Tensor active = buffer(up.y.shape()), active_grad = buffer(up.y.shape());
  list.call([=] { kernels::unary(UnaryOp::kGelu, active, up.y); });
  list.later([=, &list] { list.call([=] { kernels::binary(BinaryOp::kGeluGrad, up.g, active_grad, up.y); }); });
  add(x, list.linear(active, kWidth, active_grad).y);
}

void list_transformer(Bare& list, const Tensor& labels) {
  const Tensor x = buffer({kAll, kWidth}), x_grad = buffer({kAll, kWidth});
  for (std::int64_t i = 0; i < kLayers; ++i) list_layer(list, x, x_grad);
  const Tensor last_grad = buffer({kAll, kWidth});
  const auto head = list.linear(normalised(list, x, last_grad, x_grad), kKinds, last_grad);
  list.loss(head.y, head.g, labels);
  list.list_backward();
}

// ---- Images ----

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
  const Stage y = stage({kImages, out, side, side});
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

Stage normalise(Bare& list, const Stage& x, bool relu) {
  using dnnl::normalization_flags;
  const Stage y = stage(x.y.shape());
  const Shape channels{x.y.size(1)};
  const Tensor scale = buffer(channels), shift = buffer(channels), mean = buffer(channels), var = buffer(channels);
  const Tensor scale_grad = list.weight(scale), shift_grad = list.weight(shift);
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  if (relu) flags = flags | normalization_flags::fuse_norm_relu;
  const auto xd = describe(x.y), c = describe(scale);
#if DNNL_VERSION_MAJOR >= 3
  const auto forward = kernels::forward_desc<dnnl::batch_normalization_forward>(
      kernels::user_scratchpad(), dnnl::prop_kind::forward_training, xd, xd, 1e-5f, flags);
  const auto desc = kernels::backward_desc<dnnl::batch_normalization_backward>(forward, dnnl::prop_kind::backward, xd,
                                                                               xd, xd, 1e-5f, flags);
#else
  const auto forward = kernels::forward_desc<dnnl::batch_normalization_forward>(
      kernels::user_scratchpad(), dnnl::prop_kind::forward_training, xd, 1e-5f, flags);
  const auto desc = kernels::backward_desc<dnnl::batch_normalization_backward>(forward, dnnl::prop_kind::backward, xd,
                                                                               xd, 1e-5f, flags);
#endif
  const auto md = forward.workspace_desc();  // unused without ReLU
  const Tensor mask = Tensor::zeros({static_cast<std::int64_t>(md.get_size()) + 1}, infeed::DType::kUInt8);
  list.run(Primitive(dnnl::batch_normalization_forward(forward), forward,
                     {{DNNL_ARG_SRC, xd},
                      {DNNL_ARG_DST, xd},
                      {DNNL_ARG_SCALE, c},
                      {DNNL_ARG_SHIFT, c},
                      {DNNL_ARG_MEAN, c},
                      {DNNL_ARG_VARIANCE, c},
                      {DNNL_ARG_WORKSPACE, relu ? md : c}}),
           {{DNNL_ARG_SRC, x.y},
            {DNNL_ARG_DST, y.y},
            {DNNL_ARG_SCALE, scale},
            {DNNL_ARG_SHIFT, shift},
            {DNNL_ARG_MEAN, mean},
            {DNNL_ARG_VARIANCE, var},
            {DNNL_ARG_WORKSPACE, mask}});
  list.later([=, &list] {
    list.run(Primitive(dnnl::batch_normalization_backward(desc), desc,
                       {{DNNL_ARG_SRC, xd},
                        {DNNL_ARG_DIFF_DST, xd},
                        {DNNL_ARG_DIFF_SRC, xd},
                        {DNNL_ARG_SCALE, c},
                        {DNNL_ARG_SHIFT, c},
                        {DNNL_ARG_MEAN, c},
                        {DNNL_ARG_VARIANCE, c},
                        {DNNL_ARG_DIFF_SCALE, c},
                        {DNNL_ARG_DIFF_SHIFT, c},
                        {DNNL_ARG_WORKSPACE, relu ? md : c}}),
             {{DNNL_ARG_SRC, x.y},
              {DNNL_ARG_DIFF_DST, y.g},
              {DNNL_ARG_DIFF_SRC, x.g},
              {DNNL_ARG_SCALE, scale},
              {DNNL_ARG_SHIFT, shift},
              {DNNL_ARG_MEAN, mean},
              {DNNL_ARG_VARIANCE, var},
              {DNNL_ARG_DIFF_SCALE, scale_grad},
              {DNNL_ARG_DIFF_SHIFT, shift_grad},
              {DNNL_ARG_WORKSPACE, mask}});
  });
  return y;
}

// Windows of 3, steps of 2.
Stage pool(Bare& list, const Stage& x) {
  const Stage y = stage({kImages, x.y.size(1), x.y.size(2) / 2, x.y.size(3) / 2});
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

}  // namespace

Step bare_step(Model model) {
  const auto list = std::make_shared<Bare>();
  const auto& values = data_of(model).labels;
  const Tensor labels =
      Tensor::from_values(std::span<const std::int64_t>(values), {static_cast<std::int64_t>(values.size())});
  if (model == Model::kMlp) list_mlp(*list, labels);
  if (model == Model::kTransformer) list_transformer(*list, labels);
  if (model == Model::kResnet) list_resnet(*list, labels);
  return [list] {
    (*list)();
    return 0.0;
  };
}

}  // namespace bench

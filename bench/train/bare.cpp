#include "bare.h"

#include <cstring>
#include <memory>
#include <utility>

#include "infeed/train/autograd/grad_mode.h"
#include "train/kernels/cross_entropy.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/layer_norm.h"
#include "train/kernels/reduce.h"
#include "train/kernels/softmax.h"
#include "works.h"

namespace bench {

using kernels::BinaryOp;
using kernels::describe;
using kernels::Primitive;
using kernels::UnaryOp;

void Bare::operator()() const {
  const infeed::NoGradGuard no_grad;
  for (const auto& call : calls_) call();
  infeed::optim::sgd_step(rows_, {.lr = 0.0, .momentum = 0.9});
}

Tensor Bare::weight(const Tensor& w) {
  rows_.push_back({w, Tensor::zeros(w.shape()), Tensor::zeros(w.shape()), false});
  return rows_.back().grad;
}

void Bare::run(Primitive primitive, std::vector<std::pair<int, Tensor>> arguments) {
  std::vector<Primitive::Value> values;
  for (const auto& [id, tensor] : arguments) values.push_back({id, tensor.data_ptr()});
  const auto kept = std::make_shared<Primitive>(std::move(primitive));
  call([kept, values = std::move(values), arguments = std::move(arguments)] { kept->run(values); });
}

void Bare::product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
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

Bare::Linear Bare::linear(const Tensor& x, std::int64_t out, const Tensor& x_grad, bool relu) {
  const Tensor w = buffer({out, x.size(1)}), b = buffer({out});
  Linear made{buffer({x.size(0), out}), buffer({x.size(0), out})};
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

void Bare::loss(const Tensor& logits, const Tensor& g, const Tensor& labels) {
  call([=] {
    const auto [value, normalise] = kernels::cross_entropy(logits, labels, {-100, 0.0});
    const Tensor grad = kernels::cross_entropy_backward(1.0f, logits, normalise, labels, {-100, 0.0});
    std::memcpy(g.data_ptr(), grad.data_ptr(), g.nbytes());
  });
}

void Bare::list_backward() {
  for (; !backward_.empty(); backward_.pop_back()) backward_.back()();
}

namespace {

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
  Tensor y = buffer(x.shape());
  const Tensor w = buffer({kWidth}), b = buffer({kWidth});
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

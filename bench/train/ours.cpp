#include "infeed/train/train.h"
#include "works.h"

namespace bench {
namespace {

using infeed::Tensor;
namespace nn = infeed::nn;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, bool bias) {
  return nn::Conv2d({.in_channels = in,
                     .out_channels = out,
                     .kernel_size = kernel,
                     .stride = stride,
                     .padding = kernel / 2,
                     .bias = bias});
}

struct Block : nn::Module {
  Block(std::int64_t in, std::int64_t out, std::int64_t stride)
      : body(register_module("body", nn::Sequential(conv(in, out, 3, stride, false), nn::BatchNorm2d(out), nn::ReLU(),
                                                    conv(out, out, 3, 1, false), nn::BatchNorm2d(out)))) {
    if (in != out)
      shortcut = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride, false), nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) override { return relu((*body)(x) + (shortcut ? (*shortcut)(x) : x)); }

  std::shared_ptr<nn::Sequential> body, shortcut;
};

struct Layer : nn::Module {
  std::shared_ptr<nn::Linear> qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
  std::shared_ptr<nn::Linear> out = register_module("out", nn::Linear(kWidth, kWidth));
  std::shared_ptr<nn::Linear> up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
  std::shared_ptr<nn::Linear> down = register_module("down", nn::Linear(4 * kWidth, kWidth));
  Tensor scale1 = register_parameter("scale1", Tensor::ones({kWidth}));
  Tensor shift1 = register_parameter("shift1", Tensor::zeros({kWidth}));
  Tensor scale2 = register_parameter("scale2", Tensor::ones({kWidth}));
  Tensor shift2 = register_parameter("shift2", Tensor::zeros({kWidth}));

  Tensor forward(const Tensor& x) override {
    const Tensor heads = (*qkv)(nn::layer_norm(x, {kWidth}, scale1, shift1))
                             .view({kSequences, kTokens, 3, kHeads, kWidth / kHeads})
                             .permute({2, 0, 3, 1, 4});
    const Tensor mixed = nn::scaled_dot_product_attention(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2));
    const Tensor y = x + (*out)(mixed.transpose(1, 2).reshape({kSequences, kTokens, kWidth}));
    return y + (*down)(gelu((*up)(nn::layer_norm(y, {kWidth}, scale2, shift2))));
  }
};

struct Transformer : nn::Module {
  Transformer() {
    for (std::int64_t i = 0; i < kLayers; ++i) layers.push_back(register_module("layer" + std::to_string(i), Layer()));
  }
  Tensor forward(const Tensor& tokens) override {
    Tensor x = nn::embedding(tokens, kinds) + places;
    for (const auto& layer : layers) x = (*layer)(x);
    return (*head)(nn::layer_norm(x, {kWidth}, scale, shift)).view({kSequences * kTokens, kKinds});
  }

  Tensor kinds = register_parameter("kinds", Tensor::randn({kKinds, kWidth}));
  Tensor places = register_parameter("places", Tensor::randn({kTokens, kWidth}));
  Tensor scale = register_parameter("scale", Tensor::ones({kWidth}));
  Tensor shift = register_parameter("shift", Tensor::zeros({kWidth}));
  std::shared_ptr<nn::Linear> head = register_module("head", nn::Linear(kWidth, kKinds));
  std::vector<std::shared_ptr<Layer>> layers;
};

std::shared_ptr<nn::Module> make(Model model) {
  switch (model) {
    case Model::kTransformer: return std::make_shared<Transformer>();
    case Model::kMlp:
      return std::make_shared<nn::Sequential>(nn::Linear(kPixels, kHidden), nn::ReLU(), nn::Linear(kHidden, kHidden),
                                              nn::ReLU(), nn::Linear(kHidden, kClasses));
    case Model::kResnet:
      return std::make_shared<nn::Sequential>(conv(3, 32, 3, 1, false), nn::BatchNorm2d(32), nn::ReLU(),
                                              nn::MaxPool2d(3, {.stride = 2, .padding = 1}), Block(32, 32, 1),
                                              Block(32, 64, 2), Block(64, 128, 2), nn::AdaptiveAvgPool2d(1),
                                              nn::Flatten(), nn::Linear(128, kClasses));
    case Model::kCnn:
      return std::make_shared<nn::Sequential>(
          conv(3, 32, 3, 1, true), nn::BatchNorm2d(32), nn::ReLU(), nn::MaxPool2d(2), conv(32, 64, 3, 1, true),
          nn::BatchNorm2d(64), nn::ReLU(), nn::MaxPool2d(2), conv(64, 128, 3, 1, true), nn::BatchNorm2d(128),
          nn::ReLU(), nn::MaxPool2d(2), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(128, kClasses));
  }
  return nullptr;
}

Tensor inputs_of(Model model) {
  const Data& data = data_of(model);
  if (model == Model::kTransformer)
    return Tensor::from_values(std::span<const std::int64_t>(data.tokens), {kSequences, kTokens});
  const auto shape = model == Model::kMlp ? infeed::Shape{kRows, kPixels} : infeed::Shape{kImages, 3, kSide, kSide};
  return Tensor::from_values(std::span<const float>(data.inputs), shape);
}

}  // namespace

Step infeed_step(Model model) {
  infeed::manual_seed(1);
  const auto net = make(model);
  const auto sgd =
      std::make_shared<infeed::optim::SGD>(net->parameters(), infeed::optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  const auto& labels = data_of(model).labels;
  return [net, sgd, x = inputs_of(model),
          t = Tensor::from_values(std::span<const std::int64_t>(labels), {static_cast<std::int64_t>(labels.size())})] {
    sgd->zero_grad();
    const Tensor loss = nn::cross_entropy((*net)(x), t);
    loss.backward();
    sgd->step();
    return loss.item();
  };
}

Repeat infeed_multiply(Operand operand) {
  const Tensor x = Tensor::ones({16}).set_requires_grad();
  const Tensor y = Tensor::ones({16});
  if (operand == Operand::kTensor)
    return [=](int n) {
      for (int i = 0; i < n; ++i) (void)(x * y);
    };
  return [=](int n) {
    for (int i = 0; i < n; ++i) (void)(x * 2.0);
  };
}

Repeat infeed_chain() {
  Tensor x = Tensor::ones({16}).set_requires_grad();
  return [=](int n) mutable {
    for (int i = 0; i < n; ++i) {
      Tensor y = x;
      for (int k = 0; k < 10; ++k) y = y + x;
      sum(y).backward();
      x.set_grad({});
    }
  };
}

void set_threads(int threads) { infeed::set_num_threads(threads); }

}  // namespace bench

// The only translation unit that includes LibTorch: it takes a minute to compile.
#include <torch/torch.h>

#include "works.h"

namespace bench {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, bool bias) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : body(register_module("body", nn::Sequential(conv(in, out, 3, stride, false), nn::BatchNorm2d(out), nn::ReLU(),
                                                    conv(out, out, 3, 1, false), nn::BatchNorm2d(out)))) {
    if (in != out)
      shortcut = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride, false), nn::BatchNorm2d(out)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(body->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }
  nn::Sequential body, shortcut;
};
TORCH_MODULE(Block);

struct LayerImpl : nn::Module {
  nn::Linear qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear out = register_module("out", nn::Linear(kWidth, kWidth));
  nn::Linear up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
  nn::Linear down = register_module("down", nn::Linear(4 * kWidth, kWidth));
  torch::Tensor scale1 = register_parameter("scale1", torch::ones({kWidth}));
  torch::Tensor shift1 = register_parameter("shift1", torch::zeros({kWidth}));
  torch::Tensor scale2 = register_parameter("scale2", torch::ones({kWidth}));
  torch::Tensor shift2 = register_parameter("shift2", torch::zeros({kWidth}));

  torch::Tensor forward(const torch::Tensor& x) {
    const auto heads = qkv(torch::layer_norm(x, {kWidth}, scale1, shift1))
                           .view({kSequences, kTokens, 3, kHeads, kWidth / kHeads})
                           .permute({2, 0, 3, 1, 4});
    const auto mixed = torch::scaled_dot_product_attention(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2));
    const auto y = x + out(mixed.transpose(1, 2).reshape({kSequences, kTokens, kWidth}));
    return y + down(torch::gelu(up(torch::layer_norm(y, {kWidth}, scale2, shift2))));
  }
};
TORCH_MODULE(Layer);

struct Transformer : nn::Module {
  Transformer() {
    for (std::int64_t i = 0; i < kLayers; ++i) layers.push_back(register_module("layer" + std::to_string(i), Layer()));
  }
  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = torch::embedding(kinds, tokens) + places;
    for (Layer& layer : layers) x = layer(x);
    return head(torch::layer_norm(x, {kWidth}, scale, shift)).view({kSequences * kTokens, kKinds});
  }

  torch::Tensor kinds = register_parameter("kinds", torch::randn({kKinds, kWidth}));
  torch::Tensor places = register_parameter("places", torch::randn({kTokens, kWidth}));
  torch::Tensor scale = register_parameter("scale", torch::ones({kWidth}));
  torch::Tensor shift = register_parameter("shift", torch::zeros({kWidth}));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kKinds));
  std::vector<Layer> layers;
};

nn::Sequential layers_of(Model model) {
  switch (model) {
    case Model::kMlp:
      return nn::Sequential(nn::Linear(kPixels, kHidden), nn::ReLU(), nn::Linear(kHidden, kHidden), nn::ReLU(),
                            nn::Linear(kHidden, kClasses));
    case Model::kResnet:
      return nn::Sequential(conv(3, 32, 3, 1, false), nn::BatchNorm2d(32), nn::ReLU(),
                            nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), Block(32, 32, 1),
                            Block(32, 64, 2), Block(64, 128, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                            nn::Linear(128, kClasses));
    default:
      return nn::Sequential(conv(3, 32, 3, 1, true), nn::BatchNorm2d(32), nn::ReLU(), nn::MaxPool2d(2),
                            conv(32, 64, 3, 1, true), nn::BatchNorm2d(64), nn::ReLU(), nn::MaxPool2d(2),
                            conv(64, 128, 3, 1, true), nn::BatchNorm2d(128), nn::ReLU(), nn::MaxPool2d(2),
                            nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(128, kClasses));
  }
}

torch::Tensor inputs_of(Model model) {
  const Data& data = data_of(model);
  const auto of = [](const auto& values, torch::IntArrayRef shape, torch::ScalarType dtype) {
    return torch::from_blob(const_cast<void*>(static_cast<const void*>(values.data())), shape, dtype).clone();
  };
  if (model == Model::kTransformer) return of(data.tokens, {kSequences, kTokens}, torch::kInt64);
  if (model == Model::kMlp) return of(data.inputs, {kRows, kPixels}, torch::kFloat32);
  return of(data.inputs, {kImages, 3, kSide, kSide}, torch::kFloat32);
}

template <class Net>
Step step_of(const std::shared_ptr<Net>& net, const torch::Tensor& x, const torch::Tensor& t) {
  const auto sgd = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  return [=] {
    sgd->zero_grad();
    torch::Tensor loss = F::cross_entropy(net->forward(x), t);
    loss.backward();
    sgd->step();
    return loss.item<double>();
  };
}

}  // namespace

Step torch_step(Model model, bool channels_last) {
  torch::manual_seed(1);
  const auto format = channels_last ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  const auto& labels = data_of(model).labels;
  const auto t = torch::from_blob(const_cast<std::int64_t*>(labels.data()), {static_cast<std::int64_t>(labels.size())},
                                  torch::kInt64);
  const torch::Tensor x = inputs_of(model);
  if (model == Model::kTransformer) return step_of(std::make_shared<Transformer>(), x, t.clone());
  nn::Sequential net = layers_of(model);
  for (auto& parameter : net->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(format));
  }
  return step_of(net.ptr(), x.dim() == 4 ? x.contiguous(format) : x, t.clone());
}

Repeat torch_multiply(Operand operand) {
  const auto x = torch::ones({16}).requires_grad_();
  const auto y = torch::ones({16});
  if (operand == Operand::kTensor)
    return [=](int n) {
      for (int i = 0; i < n; ++i) (void)(x * y);
    };
  return [=](int n) {
    for (int i = 0; i < n; ++i) (void)(x * 2.0);
  };
}

Repeat torch_chain() {
  const auto x = torch::ones({16}).requires_grad_();
  return [=](int n) mutable {
    for (int i = 0; i < n; ++i) {
      torch::Tensor y = x;
      for (int k = 0; k < 10; ++k) y = y + x;
      y.sum().backward();
      x.mutable_grad().reset();
    }
  };
}

void set_torch_threads(int threads) { at::set_num_threads(threads); }

}  // namespace bench

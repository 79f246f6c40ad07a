#include "infeed/train/nn/container.h"

#include "infeed/train/nn/activation.h"
#include "infeed/train/nn/conv.h"
#include "infeed/train/nn/linear.h"
#include "infeed/train/nn/norm.h"

namespace infeed::nn {
namespace {

// True if `layer` can apply the ReLU that follows it; then `x` becomes its output.
bool forward_with_relu(Module& layer, Tensor& x) {
  if (auto* conv = dynamic_cast<Conv2d*>(&layer)) {
    x = conv->forward(x, Activation::kRelu);
  } else if (auto* linear = dynamic_cast<Linear*>(&layer)) {
    x = linear->forward(x, Activation::kRelu);
  } else if (auto* norm = dynamic_cast<BatchNorm2d*>(&layer)) {
    x = norm->forward(x, Activation::kRelu);
  } else {
    return false;
  }
  return true;
}

}  // namespace

void Sequential::append(std::shared_ptr<Module> layer) {
  std::string name = std::to_string(size());
  add_child(std::move(name), std::move(layer));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor value = x;
  for (std::size_t i = 0; i < size(); ++i) {
    Module& layer = *children()[i].module;
    const bool relu_follows = i + 1 < size() && dynamic_cast<ReLU*>(children()[i + 1].module.get()) != nullptr;
    if (relu_follows && forward_with_relu(layer, value)) {
      ++i;
    } else {
      value = layer.forward(value);
    }
  }
  return value;
}

}  // namespace infeed::nn

#pragma once
/// Layers in a row.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>

#include "infeed/train/nn/module.h"

namespace infeed::nn {

/// Feeds each layer's output to the next; children are named "0", "1", ... A ReLU behind a Conv2d, Linear or
/// BatchNorm2d is computed in the same pass over memory (same values, same gradients).
///
///   nn::Sequential net(nn::Conv2d({.in_channels = 3, .out_channels = 32, .kernel_size = 3}), nn::ReLU());
class INFEED_API Sequential : public Module {
 public:
  template <class... Layers>
  requires(sizeof...(Layers) > 0 && (std::derived_from<std::remove_cvref_t<Layers>, Module> && ...) &&
           !(sizeof...(Layers) == 1 &&
             (std::same_as<std::remove_cvref_t<Layers>, Sequential> && ...))) explicit Sequential(Layers&&... layers) {
    (push_back(std::forward<Layers>(layers)), ...);
  }
  Sequential() = default;

  /// Adds a layer at the end.
  template <class Layer>
  requires(std::derived_from<std::remove_cvref_t<Layer>, Module>) void push_back(Layer&& layer) {
    append(std::make_shared<std::remove_cvref_t<Layer>>(std::forward<Layer>(layer)));
  }
  void append(std::shared_ptr<Module> layer);

  [[nodiscard]] Tensor forward(const Tensor& x) override;
  [[nodiscard]] std::size_t size() const noexcept { return children().size(); }
};

}  // namespace infeed::nn

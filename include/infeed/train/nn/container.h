#pragma once
/// Modules that hold others.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Modules of one type for a model to call as it likes; named "0", "1", ... It has no forward of its own.
///
///   std::shared_ptr<nn::ModuleList<Block>> blocks = register_module("blocks", nn::ModuleList<Block>());
///   for (const auto& block : *blocks) x = (*block)(x);
template <class Layer = Module>
class ModuleList : public Module {
 public:
  Layer& append(std::shared_ptr<Layer> layer) {
    add_child(std::to_string(size()), layer);
    return *layers_.emplace_back(std::move(layer));
  }
  template <std::derived_from<Layer> Child>
  Layer& append(Child layer) {
    return append(std::make_shared<Child>(std::move(layer)));
  }

  [[nodiscard]] Layer& operator[](std::size_t i) const { return *layers_.at(i); }
  [[nodiscard]] std::size_t size() const noexcept { return layers_.size(); }
  [[nodiscard]] auto begin() const noexcept { return layers_.begin(); }
  [[nodiscard]] auto end() const noexcept { return layers_.end(); }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace infeed::nn

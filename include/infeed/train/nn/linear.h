#pragma once
/// Fully connected layer.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

/// y = x weight^T + bias over the last dimension.
class INFEED_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias = true);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, Activation::kNone); }
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation) const;

  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or undefined
};

}  // namespace infeed::nn

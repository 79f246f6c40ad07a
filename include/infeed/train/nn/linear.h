#pragma once
/// Fully connected layer, and tables of vectors.

#include <optional>

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

/// y = x weight^T + bias: [.., in] to [.., out].
class INFEED_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias = true);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, Activation::kNone); }
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation) const;

  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or undefined
};

/// The row of `weight` for each index: integers [..] to [.., embedding_dim]. The row padding_idx is zero and stays so.
class INFEED_API Embedding : public Module {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, std::optional<std::int64_t> padding_idx = {});
  [[nodiscard]] Tensor forward(const Tensor& indices) override { return embedding(indices, weight, padding_idx_); }

  Tensor weight;  ///< [num_embeddings, embedding_dim], standard normal at first

 private:
  std::int64_t padding_idx_;  // -1: none
};

}  // namespace infeed::nn

#pragma once
/// Attention and the transformer's encoder (Vaswani et al., 2017). x: [L, N, E], or [N, L, E] if batch_first; without
/// a batch [L, E].

#include <functional>

#include "infeed/train/nn/activation.h"
#include "infeed/train/nn/container.h"
#include "infeed/train/nn/linear.h"
#include "infeed/train/nn/norm.h"

namespace infeed::nn {

/// Which keys a query does not see. In bool masks true leaves out (scaled_dot_product_attention means the opposite, as
/// in PyTorch); floats are added to the scores.
struct AttentionMask {
  Tensor mask;             ///< [L, S] or [N heads, L, S], or undefined
  Tensor key_padding;      ///< [N, S], or undefined
  bool is_causal = false;  ///< a query sees keys up to its own place
};

struct MultiheadAttentionOptions {
  std::int64_t embed_dim;  ///< E, a multiple of num_heads
  std::int64_t num_heads;
  double dropout = 0.0;  ///< of attention weights
  bool bias = true;
  bool batch_first = false;
};

/// Concatenated heads softmax(q k^T / sqrt(E / num_heads)) v between two linear layers.
class INFEED_API MultiheadAttention : public Module {
 public:
  explicit MultiheadAttention(const MultiheadAttentionOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, x, x); }
  [[nodiscard]] Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                               const AttentionMask& mask = {});

  Tensor in_proj_weight;             ///< [3 E, E]: of queries, keys and values
  Tensor in_proj_bias;               ///< [3 E], 0 at first, or undefined
  std::shared_ptr<Linear> out_proj;  ///< E to E

 private:
  MultiheadAttentionOptions options_;
};

struct TransformerEncoderLayerOptions {
  std::int64_t d_model;  ///< E
  std::int64_t nhead;
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::function<Tensor(const Tensor&)> activation = {};  ///< between the linear layers; default ReLU
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< x + f(norm(x)) instead of norm(x + f(x))
  bool bias = true;
};

/// Self-attention and two linear layers, each with dropout, a residual connection and a layer norm.
class INFEED_API TransformerEncoderLayer : public Module {
 public:
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, {}); }
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMask& mask);

  std::shared_ptr<MultiheadAttention> self_attn;
  std::shared_ptr<Linear> linear1, linear2;
  std::shared_ptr<LayerNorm> norm1, norm2;

 private:
  [[nodiscard]] Tensor attend(const Tensor& x, const AttentionMask& mask);
  [[nodiscard]] Tensor feed(const Tensor& x);

  std::shared_ptr<Dropout> dropout_, dropout1_, dropout2_;
  std::function<Tensor(const Tensor&)> activation_;
  bool norm_first_;
};

/// Layers in a row, and a last norm if wanted. All layers begin with the same values, as PyTorch's copies do.
class INFEED_API TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayerOptions& layer, std::int64_t num_layers, bool final_norm = false);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, {}); }
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMask& mask);

  std::shared_ptr<ModuleList<TransformerEncoderLayer>> layers;
  std::shared_ptr<LayerNorm> norm;  ///< or null
};

}  // namespace infeed::nn

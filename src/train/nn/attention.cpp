#include "infeed/train/nn/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/nn/init.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

// What is added to scores [N, heads, L, S]; undefined where every query sees every key.
Tensor added(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::kBool) return mask;
  return masked_fill(Tensor::zeros(mask.shape(), TensorOptions(dtype, mask.device())), mask, -INFINITY);
}

Tensor joined(const AttentionMask& given, std::int64_t heads, const Tensor& q, const Tensor& k) {
  Tensor mask = added(given.mask, q.dtype());
  Tensor padding = added(given.key_padding, q.dtype());
  if (mask.defined() && mask.ndim() == 3) mask = mask.unflatten(0, {-1, heads});
  if (!padding.defined()) return mask;
  padding = padding.view({-1, 1, 1, k.size(2)});
  if (!mask.defined() && given.is_causal) {
    const Tensor later = triu(Tensor::ones({q.size(2), k.size(2)}, TensorOptions(DType::kBool, q.device())), 1);
    mask = added(later, q.dtype());
  }
  return mask.defined() ? mask + padding : padding;
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& options) : options_(options) {
  const std::int64_t e = options.embed_dim;
  if (e <= 0 || options.num_heads <= 0 || e % options.num_heads != 0)
    throw ConfigError(fmt::format("MultiheadAttention: embed_dim ({}) must be a positive multiple of num_heads ({}).",
                                  e, options.num_heads));
  in_proj_weight = register_parameter("in_proj_weight", Tensor::empty({3 * e, e}));
  if (options.bias) in_proj_bias = register_parameter("in_proj_bias", Tensor::zeros({3 * e}));
  out_proj = register_module("out_proj", Linear(e, e, options.bias));
  xavier_uniform_(in_proj_weight);
  const NoGradGuard no_grad;
  if (options.bias) out_proj->bias.zero_();
}

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionMask& given) {
  const int batch = options_.batch_first ? 0 : 1;
  if (query.ndim() == 2) {
    const auto batched = [&](const Tensor& t) { return t.defined() ? t.unsqueeze(0) : t; };
    return forward(query.unsqueeze(batch), key.unsqueeze(batch), value.unsqueeze(batch),
                   {given.mask, batched(given.key_padding), given.is_causal})
        .squeeze(batch);
  }
  require(query.ndim() == 3, "MultiheadAttention: expected [L, N, E] or [L, E], got {}", query.shape());
  std::vector<Tensor> parts;
  if (query.is_same(key) && key.is_same(value)) {
    parts = chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
  } else {
    const auto biases = in_proj_bias.defined() ? chunk(in_proj_bias, 3) : std::vector<Tensor>(3);
    const auto weights = chunk(in_proj_weight, 3);
    for (std::size_t i = 0; i < 3; ++i)
      parts.push_back(linear(i == 0 ? query : i == 1 ? key : value, weights[i], biases[i]));
  }
  for (Tensor& part : parts) {  // to [N, heads, L, E / heads]
    part = part.unflatten(-1, {options_.num_heads, -1});
    part = options_.batch_first ? part.transpose(1, 2) : part.permute({1, 2, 0, 3});
  }
  const Tensor mask = joined(given, options_.num_heads, parts[0], parts[1]);
  const double dropout = is_training() ? options_.dropout : 0.0;
  const Tensor mixed =
      scaled_dot_product_attention(parts[0], parts[1], parts[2], mask,
                                   {.dropout = dropout, .is_causal = given.is_causal && !mask.defined(), .scale = {}});
  return (*out_proj)((options_.batch_first ? mixed.transpose(1, 2) : mixed.permute({2, 0, 1, 3})).flatten(2));
}

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& o)
    : activation_(o.activation), norm_first_(o.norm_first) {
  self_attn = register_module("self_attn", MultiheadAttention({.embed_dim = o.d_model,
                                                               .num_heads = o.nhead,
                                                               .dropout = o.dropout,
                                                               .bias = o.bias,
                                                               .batch_first = o.batch_first}));
  linear1 = register_module("linear1", Linear(o.d_model, o.dim_feedforward, o.bias));
  dropout_ = register_module("dropout", Dropout(o.dropout));
  linear2 = register_module("linear2", Linear(o.dim_feedforward, o.d_model, o.bias));
  norm1 = register_module("norm1", LayerNorm(o.d_model, {.eps = o.layer_norm_eps, .bias = o.bias}));
  norm2 = register_module("norm2", LayerNorm(o.d_model, {.eps = o.layer_norm_eps, .bias = o.bias}));
  dropout1_ = register_module("dropout1", Dropout(o.dropout));
  dropout2_ = register_module("dropout2", Dropout(o.dropout));
}

Tensor TransformerEncoderLayer::attend(const Tensor& x, const AttentionMask& mask) {
  return (*dropout1_)(self_attn->forward(x, x, x, mask));
}

Tensor TransformerEncoderLayer::feed(const Tensor& x) {
  const Tensor wide = activation_ ? activation_((*linear1)(x)) : linear1->forward(x, Activation::kRelu);
  return (*dropout2_)((*linear2)((*dropout_)(wide)));
}

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMask& mask) {
  if (norm_first_) {
    const Tensor attended = x + attend((*norm1)(x), mask);
    return attended + feed((*norm2)(attended));
  }
  const Tensor attended = (*norm1)(x + attend(x, mask));
  return (*norm2)(attended + feed(attended));
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayerOptions& layer, std::int64_t num_layers,
                                       bool final_norm) {
  layers = register_module("layers", ModuleList<TransformerEncoderLayer>());
  for (std::int64_t i = 0; i < num_layers; ++i) {
    const Generator before = default_generator();
    layers->append(TransformerEncoderLayer(layer));
    if (i == 0) continue;
    (*layers)[layers->size() - 1].load_state_dict((*layers)[0].state_dict());
    default_generator() = before;
  }
  if (final_norm) norm = register_module("norm", LayerNorm(layer.d_model, {.eps = layer.layer_norm_eps}));
}

Tensor TransformerEncoder::forward(const Tensor& x, const AttentionMask& mask) {
  Tensor y = x;
  for (const auto& layer : *layers) y = layer->forward(y, mask);
  return norm ? (*norm)(y) : y;
}

}  // namespace infeed::nn

// Softmax, attention, dropout and embedding.

#include <cmath>

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/autocast.h"
#include "train/autograd/replay.h"
#include "train/kernels/attention.h"
#include "train/kernels/random.h"
#include "train/kernels/softmax.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed::nn {
namespace {

using Kernel = Tensor (*)(const Tensor& rows);
using BackwardKernel = Tensor (*)(const Tensor& g, const Tensor& rows);

// Kernels work along the last dimension of float32; others go there and back.
template <class F>
Tensor along(const Tensor& x, int dim, F&& f) {
  const NoGradGuard no_grad;
  const Tensor wide = x.detach().to(DType::kFloat32);
  const Tensor y =
      dim == x.ndim() - 1 ? f(wide.contiguous()) : f(wide.transpose(dim, -1).contiguous()).transpose(dim, -1);
  return y.to(x.dtype());
}

Tensor in_operations(const Tensor& x, int dim, bool logarithm) {
  const Tensor shifted = x - amax(x, {dim}, true).detach();
  if (logarithm) return shifted - log(sum(exp(shifted), {dim}, true));
  const Tensor e = exp(shifted);
  return e / sum(e, {dim}, true);
}

Tensor softmax_like(std::string_view name, const Tensor& given, int dim, std::optional<DType> dtype, bool logarithm) {
  const Tensor x = dtype ? given.to(*dtype) : given;
  require(is_floating_point(x.dtype()), "\"{}\" not implemented for '{}'",
          logarithm ? "log_softmax_lastdim_kernel_impl" : "softmax_lastdim_kernel_impl", x.dtype());
  const int at = wrap_dim(dim, x.ndim());
  if (x.ndim() == 0) return softmax_like(name, x.unsqueeze(0), 0, {}, logarithm).squeeze(0);
  if (x.is_meta() || x.numel() == 0) return x * 1.0;
  const bool wide = x.dtype() == DType::kFloat64;
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    if (wide) return in_operations(x, at, logarithm);
    return along(x, at, logarithm ? Kernel(kernels::log_softmax) : Kernel(kernels::softmax));
  }();
  return record(name, {x}, y, {y}, [at, logarithm, wide](const Pass& p) {
    const Tensor out = p.saved(0);
    if (wide || grad_enabled()) {
      if (logarithm) return p.g() - exp(out) * sum(p.g(), {at}, true);
      return out * (p.g() - sum(p.g() * out, {at}, true));
    }
    const auto kernel =
        logarithm ? BackwardKernel(kernels::log_softmax_backward) : BackwardKernel(kernels::softmax_backward);
    const auto rows = [&](const Tensor& t) { return t.detach().to(DType::kFloat32).transpose(at, -1).contiguous(); };
    return kernel(rows(p.g()), rows(out)).transpose(at, -1).to(out.dtype());
  });
}

// -infinity where a query must not see a key.
Tensor mask_to_add(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != DType::kBool) return mask;
  const NoGradGuard no_grad;
  const TensorOptions options(like.dtype(), like.device());
  return where(mask, Tensor::zeros({}, options), Tensor::full({}, -INFINITY, options));
}

}  // namespace

Tensor softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return softmax_like("SoftmaxBackward0", x, dim, dtype, false);
}
Tensor log_softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return softmax_like("LogSoftmaxBackward0", x, dim, dtype, true);
}

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  require<ValueError>(p >= 0.0 && p <= 1.0, "dropout probability has to be between 0 and 1, but got {}", p);
  if (!training || p == 0.0) return x;
  if (p == 1.0) return x * 0.0;
  Tensor mask = Tensor::empty_like(x);
  kernels::bernoulli(mask, 1.0 - p, generator == nullptr ? default_generator() : *generator);
  mask.mul_(1.0 / (1.0 - p));
  return x * mask;
}

Tensor embedding(const Tensor& indices, const Tensor& weight, std::int64_t padding_index) {
  require(weight.ndim() == 2, "'weight' must be 2-D");
  require(is_integral(indices.dtype(), false),
          "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {} "
          "instead",
          indices.dtype());
  const Tensor flat = indices.detach().to(DType::kInt64).reshape({indices.numel()});
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  const Tensor rows = [&] {
    const NoGradGuard no_grad;
    return index_select(weight.detach(), 0, flat).view(shape);
  }();
  return record("EmbeddingBackward0", {weight}, rows, {flat}, [from = weight.shape(), padding_index](const Pass& p) {
    const Tensor at = p.saved(0);
    Tensor g = p.g().reshape({at.numel(), from[1]});
    if (padding_index >= 0) g = where(eq(at, padding_index).unsqueeze(1), 0.0, g);
    return index_add(Tensor::zeros(from, g.options()), 0, at, g);
  });
}

namespace {

Tensor attention_in_operations(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                               const AttentionSpec& spec, double scale) {
  Tensor scores = matmul(q * scale, k.transpose(-2, -1));
  if (spec.is_causal) {
    const Tensor seen = tril(Tensor::ones({q.size(-2), k.size(-2)}, TensorOptions(DType::kBool, q.device())));
    scores = scores + mask_to_add(seen, scores);
  } else if (mask.defined()) {
    scores = scores + mask_to_add(mask, scores);
  }
  return matmul(dropout(softmax(scores, -1), spec.dropout, spec.dropout > 0.0), v);
}

void check_mask(const Tensor& q, const Tensor& k, const Tensor& mask) {
  require(mask.dtype() == DType::kBool || mask.dtype() == DType::kFloat32 || mask.dtype() == q.dtype(),
          "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  "
          "query.dtype: {} instead.",
          mask.dtype(), q.dtype());
  (void)broadcast_shape({q.size(-2), k.size(-2)}, mask.ndim() < 2 ? mask.shape() : Shape{mask.size(-2), mask.size(-1)});
}

// [N, H, L, E] of float32, or of a half type: what the kernel takes. The mask as one to add.
bool fits_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionSpec& spec) {
  const auto heads = [&](const Tensor& t) {
    return t.ndim() == 4 && t.dtype() == q.dtype() && t.size(0) == q.size(0) && t.size(1) == q.size(1) &&
           t.numel() != 0 && !t.is_meta() && !is_on_device(t);
  };
  const bool dtype = is_floating_point(q.dtype()) && q.dtype() != DType::kFloat64;
  return dtype && spec.dropout == 0.0 && heads(q) && heads(k) && heads(v) && q.size(3) == k.size(3) &&
         k.size(2) == v.size(2) &&
         !(mask.defined() &&
           (mask.requires_grad() || !is_expandable_to(mask.shape(), {q.size(0), q.size(1), q.size(2), k.size(2)})));
}

Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionSpec& spec,
                       double scale) {
  const auto problem_of = [spec, scale](const Tensor& of_q, const Tensor& of_k, const Tensor& of_v,
                                        const Tensor& to_add) {
    const auto rows = [](const Tensor& t) { return t.strides()[3] == 1 ? t.detach() : t.detach().contiguous(); };
    return kernels::AttentionProblem{rows(of_q), rows(of_k),     rows(of_v),
                                     to_add,     spec.is_causal, static_cast<float>(scale)};
  };
  const Tensor added = mask.defined() ? mask_to_add(mask, q).detach().to(DType::kFloat32) : mask;
  const auto [y, logsumexp] = kernels::attention(problem_of(q, k, v, added));
  return record(
      "ScaledDotProductFlashAttentionForCpuBackward0", {q, k, v}, y, {q, k, v, added, logsumexp}, [=](const Pass& p) {
        if (grad_enabled())
          return replay(p, {p.saved(0), p.saved(1), p.saved(2)}, [&](const std::vector<Tensor>& in) {
            return attention_in_operations(in[0], in[1], in[2], p.saved(3), spec, scale);
          });
        const Tensor g = p.g().strides()[3] == 1 ? p.g() : p.g().contiguous();
        auto grads =
            kernels::attention_backward(g, problem_of(p.saved(0), p.saved(1), p.saved(2), p.saved(3)), p.saved(4));
        if (p.needs(0)) p.give(0, std::move(grads.q));
        if (p.needs(1)) p.give(1, std::move(grads.k));
        if (p.needs(2)) p.give(2, std::move(grads.v));
      });
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                    const AttentionSpec& spec) {
  if (amp::is_active()) return amp::lowered(scaled_dot_product_attention, q, k, v, mask, spec);
  require(!spec.is_causal || !mask.defined(),
          "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  require(q.ndim() >= 2 && k.ndim() >= 2 && v.ndim() >= 2,
          "scaled_dot_product_attention: expected tensors of at least 2 dimensions, got {}, {} and {}", q.ndim(),
          k.ndim(), v.ndim());
  if (mask.defined()) check_mask(q, k, mask);
  if (q.dtype() == DType::kFloat16) {  // rounded once
    const auto wide = [](const Tensor& x) { return x.to(DType::kFloat32); };
    const Tensor added = mask.defined() ? wide(mask_to_add(mask, q)) : mask;
    return scaled_dot_product_attention(wide(q), wide(k), wide(v), added, spec).to(DType::kFloat16);
  }
  const double scale = spec.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  if (q.ndim() == 3 && k.ndim() == 3 && v.ndim() == 3 && (!mask.defined() || mask.ndim() <= 3)) {
    const Tensor of_heads = mask.defined() && mask.ndim() == 3 ? mask.unsqueeze(1) : mask;
    if (const Tensor q4 = q.unsqueeze(1), k4 = k.unsqueeze(1), v4 = v.unsqueeze(1);
        fits_kernel(q4, k4, v4, of_heads, spec))
      return scaled_dot_product_attention(q4, k4, v4, of_heads, spec).squeeze(1);
  }
  if (!fits_kernel(q, k, v, mask, spec)) return attention_in_operations(q, k, v, mask, spec, scale);
  const auto wide = [](const Tensor& t) { return t.to(DType::kFloat32); };
  return fused_attention(wide(q), wide(k), wide(v), mask, spec, scale).to(q.dtype());
}

}  // namespace infeed::nn

// Batch, layer and group normalisation.

#include <cmath>

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/replay.h"
#include "train/autograd/result.h"
#include "train/kernels/batch_norm.h"
#include "train/kernels/dnnl_api.h"
#include "train/kernels/layer_norm.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

// ---- Batch ----

// [C] beside [N, C, ..]
Tensor per_channel(const Tensor& t, const Tensor& x) {
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1));
  shape[1] = t.numel();
  return t.view(shape);
}

Dims all_but_channels(const Tensor& x) {
  Dims dims{0};
  for (int d = 2; d < x.ndim(); ++d) dims.push_back(d);
  return dims;
}

Tensor scaled(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor product = weight.defined() ? y * per_channel(weight, x) : y;
  return bias.defined() ? product + per_channel(bias, x) : product;
}

Tensor batch_norm_in_operations(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  if (is_half(x.dtype())) return batch_norm_in_operations(widened(x), weight, bias, eps).to(x.dtype());
  const Dims dims = all_but_channels(x);
  const Tensor centred = x - mean(x, dims, true);
  return scaled(centred * rsqrt(mean(centred * centred, dims, true) + eps), x, weight, bias);
}

double count_a_channel(const Tensor& x) {
  const std::int64_t count = x.numel() / x.size(1);
  return static_cast<double>(count);
}

// running = (1 - momentum) running + momentum batch; the variance unbiased.
void update_running(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean, const Tensor& variance,
                    double count, double momentum) {
  const NoGradGuard no_grad;
  if (Tensor m = running_mean; m.defined()) m.mul_(1.0 - momentum).add_(mean, momentum);
  if (Tensor v = running_var; v.defined()) v.mul_(1.0 - momentum).add_(variance, momentum * count / (count - 1.0));
}

// Evaluation: the statistics are constants, so plain arithmetic does.
Tensor batch_norm_eval(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                       double eps) {
  if (is_half(x.dtype())) return batch_norm_eval(widened(x), mean, var, weight, bias, eps).to(x.dtype());
  const Tensor factor = rsqrt(widened(var.detach()) + eps);
  return scaled((x - per_channel(mean.detach(), x)) * per_channel(factor, x), x, weight, bias);
}

void check_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                      bool training) {
  require(x.ndim() >= 2, "batch_norm: expected an input of two or more dimensions, got {}", x.shape());
  const auto check = [&](std::string_view name, const Tensor& t) {
    require(!t.defined() || t.shape() == Shape{x.size(1)}, "{} should contain {} elements not {}", name, x.size(1),
            t.defined() ? t.numel() : 0);
  };
  check("running_mean", mean);
  check("running_var", var);
  check("weight", weight);
  check("bias", bias);
  require(training || (mean.defined() && var.defined()),
          "Expected running_mean and running_var to be defined when training=False");
  require<ValueError>(!training || x.numel() / std::max<std::int64_t>(x.size(1), 1) > 1,
                      "Expected more than 1 value per channel when training, got input size torch.Size({})", x.shape());
}

Tensor batch_norm_native(const Tensor& image, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, const BatchNormSpec& spec) {
  const bool relu = spec.activation == Activation::kRelu;
  const kernels::BatchNormResult r = kernels::batch_norm_train(image, weight, bias, spec.eps, relu);
  update_running(running_mean, running_var, r.mean, r.variance, count_a_channel(image), spec.momentum);
  return record("NativeBatchNormBackward0", {image, weight, bias}, r.y,
                {image, weight, bias, r.mean, r.variance, r.relu_mask}, [eps = spec.eps, relu](const Pass& p) {
                  if (grad_enabled())
                    return replay(p, {p.saved(0), p.saved(1), p.saved(2)}, [&](const std::vector<Tensor>& in) {
                      const Tensor y = batch_norm_in_operations(in[0], in[1], in[2], eps);
                      return relu ? infeed::relu(y) : y;
                    });
                  const Tensor g = p.g().contiguous(MemoryFormat::kChannelsLast);
                  auto grads = kernels::batch_norm_backward(g, p.saved(0), p.saved(1), p.saved(2), p.saved(3),
                                                            p.saved(4), p.saved(5), eps);
                  if (p.needs(0)) p.give(0, std::move(grads.x));
                  if (p.needs(1)) p.give(1, std::move(grads.scale));
                  if (p.needs(2)) p.give(2, std::move(grads.shift));
                });
}

Tensor batch_norm_plain(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, const BatchNormSpec& spec) {
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    const Dims dims = all_but_channels(x);
    const Tensor wide = widened(x);
    update_running(running_mean, running_var, mean(wide, dims), var(wide, dims, 0.0), count_a_channel(x),
                   spec.momentum);
    return batch_norm_in_operations(x, weight, bias, spec.eps);
  }();
  return record("NativeBatchNormBackward0", {x, weight, bias}, y, {x, weight, bias}, [eps = spec.eps](const Pass& p) {
    replay(p, {p.saved(0), p.saved(1), p.saved(2)},
           [&](const std::vector<Tensor>& in) { return batch_norm_in_operations(in[0], in[1], in[2], eps); });
  });
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight_given,
                  const Tensor& bias_given, const BatchNormSpec& spec) {
  check_batch_norm(x, weight_given, bias_given, running_mean, running_var, spec.training);
  const auto dense = [](const Tensor& t) { return t.defined() ? t.contiguous() : t; };
  const Tensor weight = dense(weight_given);
  const Tensor bias = dense(bias_given);
  const bool relu = spec.activation == Activation::kRelu;
  const auto finished = [&](const Tensor& y) { return relu ? infeed::relu(y) : y; };
  const auto fits = [](const Tensor& t) { return t.defined() && t.dtype() == DType::kFloat32; };
  const bool known = x.dtype() == DType::kFloat32 || (x.dtype() == DType::kBFloat16 && kernels::has_bfloat16());
  const bool native = known && fits(weight) && fits(bias) && !x.is_meta() && !is_on_device(x) && x.numel() != 0;
  if (!spec.training) {
    if (!native || x.ndim() != 4 || needs_graph({x, weight, bias}))
      return finished(batch_norm_eval(x, running_mean, running_var, weight, bias, spec.eps));
    return kernels::batch_norm_eval(x.contiguous(MemoryFormat::kChannelsLast), weight, bias, dense(running_mean),
                                    dense(running_var), spec.eps, relu);
  }
  if (!native) return finished(batch_norm_plain(x, weight, bias, running_mean, running_var, spec));
  if (x.ndim() == 4)
    return batch_norm_native(x.contiguous(MemoryFormat::kChannelsLast), weight, bias, running_mean, running_var, spec);
  const Tensor image = x.reshape({x.size(0), x.size(1), 1, x.numel() / (x.size(0) * x.size(1))});
  return batch_norm_native(image.contiguous(MemoryFormat::kChannelsLast), weight, bias, running_mean, running_var, spec)
      .reshape(x.shape());
}

// ---- Layer and group ----

namespace {

// Rows [.., n], normalised over the last dimension.
Tensor rows_in_operations(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor centred = x - mean(x, {-1}, true);
  Tensor y = centred * rsqrt(mean(centred * centred, {-1}, true) + eps);
  if (weight.defined()) y = y * weight;
  return bias.defined() ? y + bias : y;
}

Tensor normalised_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const bool fits = x.dtype() == DType::kFloat32 && !x.is_meta() && !is_on_device(x) && x.numel() != 0 &&
                    (!weight.defined() || weight.dtype() == x.dtype()) &&
                    (!bias.defined() || bias.dtype() == x.dtype());
  if (!fits) {
    const bool half = itemsize(x.dtype()) == 2;
    if (!half) return rows_in_operations(x, weight, bias, eps);
    const auto wide = [](const Tensor& t) { return t.defined() ? t.to(DType::kFloat32) : t; };
    return normalised_rows(wide(x), wide(weight), wide(bias), eps).to(x.dtype());
  }
  const kernels::LayerNormResult r = kernels::layer_norm(x.detach().contiguous(), weight, bias, eps);
  return record(
      "NativeLayerNormBackward0", {x, weight, bias}, r.y, {x, weight, bias, r.mean, r.inverse}, [eps](const Pass& p) {
        if (grad_enabled())
          return replay(p, {p.saved(0), p.saved(1), p.saved(2)},
                        [&](const std::vector<Tensor>& in) { return rows_in_operations(in[0], in[1], in[2], eps); });
        auto grads = kernels::layer_norm_backward(p.g().contiguous(), p.saved(0).detach().contiguous(), p.saved(1),
                                                  p.saved(3), p.saved(4));
        if (p.needs(0)) p.give(0, std::move(grads.x));
        if (p.needs(1)) p.give(1, std::move(grads.weight));
        if (p.needs(2)) p.give(2, std::move(grads.bias));
      });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias, double eps) {
  const int first = x.ndim() - shape.ndim();
  const bool matches =
      first >= 0 && !shape.empty() && std::equal(shape.begin(), shape.end(), x.shape().begin() + first);
  require(matches, "Given normalized_shape={}, expected input with shape [*, {}], but got input of size{}", shape,
          shape, x.shape());
  require(
      !weight.defined() || weight.shape() == shape,
      "Expected weight to be of same shape as normalized_shape, but got weight of shape {} and normalized_shape = {}",
      weight.defined() ? weight.shape() : Shape(), shape);
  require(!bias.defined() || bias.shape() == shape,
          "Expected bias to be of same shape as normalized_shape, but got bias of shape {} and normalized_shape = {}",
          bias.defined() ? bias.shape() : Shape(), shape);
  if (shape.ndim() == 1) return normalised_rows(x, weight, bias, eps);
  const auto flat = [](const Tensor& t) { return t.defined() ? t.reshape({t.numel()}) : t; };
  return normalised_rows(x.flatten(first), flat(weight), flat(bias), eps).view(x.shape());
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  require(x.ndim() >= 2, "Expected at least 2 dimensions for input tensor but received {}", x.ndim());
  if (is_half(x.dtype())) return group_norm(widened(x), groups, widened(weight), widened(bias), eps).to(x.dtype());
  require(
      groups > 0 && x.size(1) % groups == 0,
      "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={}",
      x.shape(), groups);
  const Tensor rows =
      x.reshape({x.size(0), groups, groups == 0 || x.size(0) == 0 ? 0 : x.numel() / (x.size(0) * groups)});
  return scaled(normalised_rows(rows, {}, {}, eps).reshape(x.shape()), x, weight, bias);
}

}  // namespace infeed::nn

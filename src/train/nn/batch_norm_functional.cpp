#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/kernels/batch_norm.h"
#include "train/kernels/elementwise.h"
#include "train/nn/check_image.h"

namespace infeed::nn {
namespace {

struct BatchNormBackward final : Node {
  BatchNormBackward(const Tensor& x, const Tensor& weight, const Tensor& bias, const kernels::BatchNormResult& result,
                    double epsilon)
      : Node("batch_norm"), eps(epsilon) {
    save({x, weight, bias, result.mean, result.variance, result.relu_mask});
  }

  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Tensor grad = grads[0].contiguous(MemoryFormat::kChannelsLast);
    auto result = kernels::batch_norm_backward(grad, saved(0), saved(1), saved(2), saved(3), saved(4), saved(5), eps);
    if (needs_input_grad(0)) inputs[0] = std::move(result.x);
    if (needs_input_grad(1)) inputs[1] = std::move(result.scale);
    if (needs_input_grad(2)) inputs[2] = std::move(result.shift);
  }

  double eps;
};

// running = (1 - momentum) running + momentum batch; the variance unbiased, as in PyTorch.
void update_running(const Tensor& running_mean, const Tensor& running_var, const kernels::BatchNormResult& batch,
                    double count, double momentum) {
  const NoGradGuard no_grad;
  if (Tensor mean = running_mean; mean.defined()) mean.mul_(1.0 - momentum).add_(batch.mean, momentum);
  if (Tensor var = running_var; var.defined())
    var.mul_(1.0 - momentum).add_(batch.variance, momentum * count / (count - 1.0));
}

// Evaluation where a gradient is wanted: the statistics are constants, so plain arithmetic does.
Tensor eval_recorded(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                     const BatchNormSpec& spec) {
  const auto per_channel = [](const Tensor& t) { return t.view({1, -1, 1, 1}); };
  const Tensor scale = per_channel(exp(log(var.detach() + spec.eps) * -0.5));
  const Tensor y = (x - per_channel(mean.detach())) * (scale * per_channel(weight)) + per_channel(bias);
  return spec.activation == Activation::kRelu ? relu(y) : y;
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
           const BatchNormSpec& spec) {
  check_image("batch_norm", x);
  const Shape channels = {x.size(1)};
  check_parameter("batch_norm", "weight", weight, channels);
  check_parameter("batch_norm", "bias", bias, channels);
  if (mean.defined() || !spec.training) check_parameter("batch_norm", "running_mean", mean, channels);
  if (var.defined() || !spec.training) check_parameter("batch_norm", "running_var", var, channels);
  if (spec.training && x.numel() / std::max<std::int64_t>(x.size(1), 1) <= 1)
    throw ConfigError(
        fmt::format("batch_norm: training needs more than one value per channel, the input is {}.", x.shape().str()));
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormSpec& spec) {
  check(x, weight, bias, running_mean, running_var, spec);
  const Tensor image = x.contiguous(MemoryFormat::kChannelsLast);
  const bool relu = spec.activation == Activation::kRelu;
  if (!spec.training) {
    if (needs_graph({image, weight, bias})) return eval_recorded(image, running_mean, running_var, weight, bias, spec);
    return kernels::batch_norm_eval(image, weight, bias, running_mean, running_var, spec.eps, relu);
  }
  const kernels::BatchNormResult result = kernels::batch_norm_train(image, weight, bias, spec.eps, relu);
  const auto count = static_cast<double>(image.numel() / image.size(1));
  update_running(running_mean, running_var, result, count, spec.momentum);
  if (needs_graph({image, weight, bias}))
    connect(std::make_shared<BatchNormBackward>(image, weight, bias, result, spec.eps), {image, weight, bias},
            result.y);
  return result.y;
}

}  // namespace infeed::nn

// Losses, mostly in plain operations; the common cross entropy has a kernel.

#include <cmath>

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "infeed/train/tensor/warning.h"
#include "train/autograd/autocast.h"
#include "train/autograd/replay.h"
#include "train/autograd/result.h"
#include "train/kernels/cross_entropy.h"
#include "train/kernels/on_device.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kMean ? mean(losses) : sum(losses);
}

void check_same_size(std::string_view loss, const Tensor& x, const Tensor& t) {
  if (x.shape() != t.shape())
    warn(fmt::format(
        "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) in {}. This will "
        "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        t.shape(), x.shape(), loss));
}

// One node over the losses of all elements and their reduction: PyTorch's name for it, and less memory.
template <class Loss>
Tensor elementwise_loss(std::string_view name, const Tensor& x, const Tensor& t, Reduction reduction,
                        const Loss& loss) {
  const DType dtype = result_type(x, t);
  const auto forward = [loss, reduction, dtype](const std::vector<Tensor>& in) {
    const Tensor y = reduced(loss(widened(in[0]), widened(in[1])), reduction);
    return is_half(dtype) ? y.to(dtype) : y;
  };
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return forward({x, t});
  }();
  return record(name, {x, t}, y, {x, t}, [forward](const Pass& p) { replay(p, {p.saved(0), p.saved(1)}, forward); });
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& t, Reduction reduction) {
  if (amp::is_active()) return amp::lifted(mse_loss, x, t, reduction);
  check_same_size("mse_loss", x, t);
  return elementwise_loss("MseLossBackward0", x, t, reduction,
                          [](const Tensor& a, const Tensor& b) { return square(a - b); });
}

Tensor l1_loss(const Tensor& x, const Tensor& t, Reduction reduction) {
  if (amp::is_active()) return amp::lifted(l1_loss, x, t, reduction);
  check_same_size("l1_loss", x, t);
  return reduced(abs(x - t), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& t, Reduction reduction, double beta) {
  if (amp::is_active()) return amp::lifted(smooth_l1_loss, x, t, reduction, beta);
  require(beta >= 0.0, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0.0) return l1_loss(x, t, reduction);
  check_same_size("smooth_l1_loss", x, t);
  return elementwise_loss("SmoothL1LossBackward0", x, t, reduction, [beta](const Tensor& a, const Tensor& b) {
    const Tensor d = abs(a - b);
    return where(lt(d, beta), d * d * (0.5 / beta), d - 0.5 * beta);
  });
}

Tensor huber_loss(const Tensor& x, const Tensor& t, Reduction reduction, double delta) {
  if (amp::is_active()) return amp::lifted(huber_loss, x, t, reduction, delta);
  require(delta > 0.0, "huber_loss does not support non-positive values for delta.");
  check_same_size("huber_loss", x, t);
  return elementwise_loss("HuberLossBackward0", x, t, reduction, [delta](const Tensor& a, const Tensor& b) {
    const Tensor d = abs(a - b);
    return where(lt(d, delta), d * d * 0.5, (d - 0.5 * delta) * delta);
  });
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& t, const Tensor& weight, Reduction reduction) {
  if (amp::is_active()) return amp::lifted(binary_cross_entropy, x, t, weight, reduction);
  require<ValueError>(x.shape() == t.shape(),
                      "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) is "
                      "deprecated. Please ensure they have the same size.",
                      t.shape(), x.shape());
  if (!x.is_meta() && x.numel() != 0)
    require(min(x.detach()).item() >= 0.0 && max(x.detach()).item() <= 1.0,
            "all elements of input should be between 0 and 1");
  return elementwise_loss("BinaryCrossEntropyBackward0", x, t, reduction, [weight](const Tensor& a, const Tensor& b) {
    const Tensor loss =
        -(b * clamp(log(a), Tensor(-100.0), Tensor()) + (1.0 - b) * clamp(log1p(-a), Tensor(-100.0), Tensor()));
    return weight.defined() ? loss * weight : loss;
  });
}

// max(x, 0) - x t + log(1 + exp(-|x|)), which is (1 - t) x - logsigmoid(x).
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& t, const Tensor& weight,
                                        const Tensor& pos_weight, Reduction reduction) {
  if (amp::is_active()) return amp::lifted(binary_cross_entropy_with_logits, x, t, weight, pos_weight, reduction);
  require<ValueError>(x.shape() == t.shape(),
                      "Target size (torch.Size({})) must be the same as input size (torch.Size({}))", t.shape(),
                      x.shape());
  return elementwise_loss("BinaryCrossEntropyWithLogitsBackward0", x, t, reduction,
                          [weight, pos_weight](const Tensor& a, const Tensor& b) {
                            const Tensor factor = pos_weight.defined() ? (pos_weight - 1.0) * b + 1.0 : Tensor(1.0);
                            const Tensor loss = (1.0 - b) * a - factor * logsigmoid(a);
                            return weight.defined() ? loss * weight : loss;
                          });
}

Tensor kl_div(const Tensor& x, const Tensor& t, Reduction reduction, bool log_target, bool batch_mean) {
  if (amp::is_active()) return amp::lifted(kl_div, x, t, reduction, log_target, batch_mean);
  const Tensor losses =
      log_target ? exp(t) * (t - x) : where(gt(t, 0.0), t * log(where(gt(t, 0.0), t, 1.0)), 0.0) - t * x;
  if (batch_mean) return sum(losses) / static_cast<double>(x.size(0));
  return reduced(losses, reduction);
}

// ---- Classes ----

namespace {

void check_classes(const Tensor& x, const Tensor& t) {
  require(t.dtype() == DType::kInt64 || t.dtype() == DType::kUInt8, "expected scalar type Long but found {}",
          t.dtype());
  if (x.ndim() == 1)
    return require(t.ndim() == 0, "multi-target not supported: a target of shape {} for one input", t.shape());
  require<ValueError>(t.ndim() >= 1 && x.size(0) == t.size(0),
                      "Expected input batch_size ({}) to match target batch_size ({}).", x.size(0),
                      t.ndim() == 0 ? 1 : t.size(0));
  Shape rest = x.shape();
  Shape expected{rest[0]};
  for (int d = 2; d < x.ndim(); ++d) expected.push_back(rest[d]);
  require(t.shape() == expected, "Expected target size {}, got {}", expected, t.shape());
}

void check_weight(const Tensor& weight, std::int64_t classes) {
  require(!weight.defined() || (weight.ndim() == 1 && weight.size(0) == classes),
          "weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}",
          classes, weight.defined() ? weight.shape() : Shape());
}

void check_range(const Tensor& t, std::int64_t classes, std::int64_t ignore_index) {
  if (t.is_meta() || t.numel() == 0 || is_on_device(t)) return;
  const Tensor plain = t.detach().to(DType::kInt64).contiguous();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    const std::int64_t label = plain.data<std::int64_t>()[i];
    require<IndexError>(label == ignore_index || (label >= 0 && label < classes), "Target {} is out of bounds.", label);
  }
}

/// What counts of the target classes.
struct Targets {
  Tensor index;    // classes, 0 where ignored; with the class dimension as 1
  Tensor ignored;  // bool
  Tensor weights;  // of each element, 0 where ignored
};

Targets targets_of(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec, int dim) {
  const NoGradGuard no_grad;
  const Tensor classes = t.detach().to(DType::kInt64);
  const Tensor ignored = eq(classes, spec.ignore_index);
  const Tensor safe = where(ignored, Tensor::zeros({}, classes.options()), classes);
  const Tensor weights =
      spec.weight.defined() ? index(spec.weight.detach(), {safe}) : Tensor::ones(safe.shape(), x.options());
  return {safe.unsqueeze(dim), ignored, where(ignored, 0.0, weights.to(x.dtype()))};
}

Tensor negative_log_likelihood(const Tensor& x, const Targets& t, Reduction reduction, int dim) {
  Tensor losses = where(t.ignored, 0.0, -gather(x, dim, t.index).squeeze(dim) * t.weights);
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? sum(losses) : sum(losses) / sum(t.weights);
}

int class_dim(const Tensor& x) { return x.ndim() == 1 ? 0 : 1; }

Tensor by_probabilities(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  if (is_half(x.dtype())) {
    CrossEntropySpec wide = spec;
    wide.weight = widened(spec.weight);
    return by_probabilities(widened(x), widened(t), wide).to(x.dtype());
  }
  const int dim = class_dim(x);
  const auto classes = static_cast<double>(x.size(dim));
  const Tensor smooth =
      spec.label_smoothing > 0.0 ? t * (1.0 - spec.label_smoothing) + spec.label_smoothing / classes : t;
  Tensor weighted = log_softmax(x, dim) * smooth;
  if (spec.weight.defined()) {
    Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1));
    shape[dim] = x.size(dim);
    weighted = weighted * spec.weight.view(shape);
  }
  const Tensor losses = -sum(weighted, {dim});
  if (spec.reduction == Reduction::kMean)  // over the batch, whatever the weights
    return sum(losses) / (static_cast<double>(x.numel()) / classes);
  return reduced(losses, spec.reduction);
}

// In plain operations, for every shape, dtype and option.
Tensor by_classes(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  const int dim = class_dim(x);
  const Tensor log_probs = log_softmax(x, dim);
  const Targets targets = targets_of(x, t, spec, dim);
  Tensor nll = negative_log_likelihood(log_probs, targets, spec.reduction, dim);
  if (spec.label_smoothing == 0.0) return nll;
  Tensor weighted = log_probs;
  if (spec.weight.defined()) {
    Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1));
    shape[dim] = x.size(dim);
    weighted = log_probs * spec.weight.view(shape);
  }
  const Tensor losses = where(targets.ignored, 0.0, -sum(weighted, {dim}));
  const Tensor smooth = spec.reduction == Reduction::kNone  ? losses
                        : spec.reduction == Reduction::kSum ? sum(losses)
                                                            : sum(losses) / sum(targets.weights);
  return nll * (1.0 - spec.label_smoothing) + smooth * (spec.label_smoothing / static_cast<double>(x.size(dim)));
}

Tensor fused_cross_entropy(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  const Tensor labels = t.detach().contiguous();
  const kernels::CrossEntropySpec kernel{spec.ignore_index, spec.label_smoothing};
  const auto [loss, normalise] = kernels::cross_entropy(x.detach().contiguous(), labels, kernel);
  return record("NllLossBackward0", {x}, loss, {x, normalise, labels}, [kernel, spec](const Pass& p) {
    const Tensor in = p.saved(0);
    if (grad_enabled())
      return replay(p, {in}, [&](const auto& values) { return by_classes(values[0], p.saved(2), spec); });
    p.give(0, kernels::cross_entropy_backward(p.g(), in.detach().contiguous(), p.saved(1), p.saved(2), kernel));
  });
}

// The same by a device's kernel.
Tensor nll_on_device(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  const Tensor rows = x.contiguous(), labels = t.detach().contiguous();
  const auto [losses, counts] = kernels::on_device::pick_classes(rows.detach(), labels, spec.ignore_index);
  Tensor picked = record("NllLossBackward0", {rows}, losses, {labels}, [spec, shape = x.shape()](const Pass& p) {
    require(!grad_enabled(), "nll_loss on a device can be differentiated once: its backward has no gradient");
    return kernels::on_device::pick_classes_backward(p.g().contiguous(), p.saved(0), shape, spec.ignore_index);
  });
  if (spec.reduction == Reduction::kNone) return picked;
  return spec.reduction == Reduction::kSum ? sum(picked) : sum(picked) / sum(counts);
}

CrossEntropySpec with_wide_weight(CrossEntropySpec spec) {
  spec.weight = amp::converted(spec.weight, DType::kFloat32);
  return spec;
}

}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  if (amp::is_active()) return amp::lifted(nll_loss, x, t, with_wide_weight(spec));
  check_classes(x, t);
  const int dim = class_dim(x);
  check_weight(spec.weight, x.size(dim));
  check_range(t, x.size(dim), spec.ignore_index);
  if (is_on_device(x) && x.ndim() == 2 && !spec.weight.defined()) return nll_on_device(x, t, spec);
  const auto forward = [spec, dim, t](const std::vector<Tensor>& in) {
    return negative_log_likelihood(in[0], targets_of(in[0], t, spec, dim), spec.reduction, dim);
  };
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return forward({x});
  }();
  return record(x.ndim() > 2 ? "NllLoss2DBackward0" : "NllLossBackward0", {x}, y, {x},
                [forward](const Pass& p) { replay(p, {p.saved(0)}, forward); });
}

Tensor cross_entropy(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec) {
  if (amp::is_active()) return amp::lifted(cross_entropy, x, t, with_wide_weight(spec));
  require(spec.label_smoothing >= 0.0 && spec.label_smoothing <= 1.0,
          "label_smoothing must be between 0.0 and 1.0. Got: {}", spec.label_smoothing);
  check_weight(spec.weight, x.ndim() == 0 ? 0 : x.size(class_dim(x)));
  if (x.shape() == t.shape() && is_floating_point(t.dtype())) return by_probabilities(x, t, spec);
  check_classes(x, t);
  check_range(t, x.size(class_dim(x)), spec.ignore_index);
  const bool common = x.dtype() == DType::kFloat32 && x.ndim() == 2 && x.numel() != 0 && t.dtype() == DType::kInt64 &&
                      !spec.weight.defined() && spec.reduction == Reduction::kMean && !x.is_meta();
  if (common) return fused_cross_entropy(x, t, spec);
  if (spec.label_smoothing != 0.0) return by_classes(x, t, spec);
  return nll_loss(log_softmax(x, class_dim(x)), t, spec);
}

}  // namespace infeed::nn

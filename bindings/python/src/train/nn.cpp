// Layers and losses as functions; infeed/train/nn/functional.py gives them PyTorch's signatures.

#include "binder.h"
#include "infeed/train/nn/functional.h"

namespace infeed::python {
namespace {

nn::Size2 pair_of(const Sizes& sizes) {
  return sizes.ndim() == 1 ? nn::Size2(1, sizes[0]) : nn::Size2(sizes[0], sizes[1]);
}
// Of a one-dimensional convolution: nothing happens along the height.
nn::Size2 padding_of(const Sizes& sizes) {
  return sizes.ndim() == 1 ? nn::Size2(0, sizes[0]) : nn::Size2(sizes[0], sizes[1]);
}

using Convolve = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const nn::Conv2dSpec&);

template <Convolve convolve>
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride, const Sizes& padding,
                   const Sizes& dilation, std::int64_t groups) {
  const Unlocked unlocked(x);
  return convolve(
      x, weight, bias,
      {.stride = pair_of(stride), .padding = padding_of(padding), .dilation = pair_of(dilation), .groups = groups});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
                        const Sizes& padding, const Sizes& output_padding, const Sizes& dilation, std::int64_t groups) {
  const Unlocked unlocked(x);
  return nn::conv_transpose2d(x, weight, bias,
                              {.stride = pair_of(stride),
                               .padding = padding_of(padding),
                               .output_padding = padding_of(output_padding),
                               .dilation = pair_of(dilation),
                               .groups = groups});
}

void bind_products(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        const Unlocked unlocked(x.numel() + weight.numel());
        return nn::linear(x, weight, bias);
      },
      "input"_a, "weight"_a, "bias"_a = nb::none());
  m.def("conv1d", convolution<nn::conv1d>, "input"_a, "weight"_a, "bias"_a.none(), "stride"_a, "padding"_a,
        "dilation"_a, "groups"_a);
  m.def("conv2d", convolution<nn::conv2d>, "input"_a, "weight"_a, "bias"_a.none(), "stride"_a, "padding"_a,
        "dilation"_a, "groups"_a);
  m.def("conv_transpose2d", conv_transpose2d, "input"_a, "weight"_a, "bias"_a.none(), "stride"_a, "padding"_a,
        "output_padding"_a, "dilation"_a, "groups"_a);
  m.def(
      "scaled_dot_product_attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout, bool is_causal,
         std::optional<double> scale) {
        const Unlocked unlocked(q);
        return nn::scaled_dot_product_attention(q, k, v, mask,
                                                {.dropout = dropout, .is_causal = is_causal, .scale = scale});
      },
      "query"_a, "key"_a, "value"_a, "attn_mask"_a.none(), "dropout_p"_a, "is_causal"_a, "scale"_a.none());
}

// Averages ignore the dilation, largest values the padding's part and the divisor.
nn::PoolSpec pool_spec(const Sizes& stride, const Sizes& padding, const Sizes& dilation, bool ceil_mode,
                       bool count_include_pad, std::optional<std::int64_t> divisor) {
  return {.stride = pair_of(stride),
          .padding = padding_of(padding),
          .dilation = pair_of(dilation),
          .ceil_mode = ceil_mode,
          .count_include_pad = count_include_pad,
          .divisor_override = divisor};
}

nb::tuple both_of(const ValuesAndIndices& pair) { return nb::make_tuple(pair.values, pair.indices); }

nb::object max_pool(const Tensor& x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                    const Sizes& dilation, bool ceil_mode, bool return_indices) {
  const nn::PoolSpec spec = pool_spec(stride, padding, dilation, ceil_mode, true, {});
  if (kernel.ndim() == 1)
    return return_indices ? nb::object(both_of(nn::max_pool1d_with_indices(x, kernel[0], spec)))
                          : nb::cast(nn::max_pool1d(x, kernel[0], spec));
  if (return_indices) return both_of(nn::max_pool2d_with_indices(x, pair_of(kernel), spec));
  Tensor out;
  {
    const Unlocked unlocked(x);
    out = nn::max_pool2d(x, pair_of(kernel), spec);
  }
  return nb::cast(out);
}

Tensor avg_pool(const Tensor& x, const Sizes& kernel, const Sizes& stride, const Sizes& padding, bool ceil_mode,
                bool count_include_pad, std::optional<std::int64_t> divisor) {
  const Unlocked unlocked(x);
  const nn::PoolSpec spec = pool_spec(stride, padding, Sizes{1, 1}, ceil_mode, count_include_pad, divisor);
  return kernel.ndim() == 1 ? nn::avg_pool1d(x, kernel[0], spec) : nn::avg_pool2d(x, pair_of(kernel), spec);
}

// Over one dimension or two, as the sizes' count says.
void bind_pools(nb::module_& m) {
  m.def("_max_pool", max_pool, "input"_a, "kernel_size"_a, "stride"_a, "padding"_a, "dilation"_a, "ceil_mode"_a,
        "return_indices"_a);
  m.def("_avg_pool", avg_pool, "input"_a, "kernel_size"_a, "stride"_a, "padding"_a, "ceil_mode"_a,
        "count_include_pad"_a, "divisor_override"_a.none());
  m.def(
      "_adaptive_avg_pool",
      [](const Tensor& x, const Sizes& output) {
        const Unlocked unlocked(x);
        return output.ndim() == 1 ? nn::adaptive_avg_pool1d(x, output[0]) : nn::adaptive_avg_pool2d(x, pair_of(output));
      },
      "input"_a, "output_size"_a);
  m.def(
      "_adaptive_max_pool",
      [](const Tensor& x, const Sizes& output) {
        return both_of(output.ndim() == 1 ? nn::adaptive_max_pool1d(x, output[0])
                                          : nn::adaptive_max_pool2d(x, pair_of(output)));
      },
      "input"_a, "output_size"_a);
}

void bind_norms(nb::module_& m) {
  m.def(
      "batch_norm",
      [](const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
         bool training, double momentum, double eps) {
        const Unlocked unlocked(x);
        return nn::batch_norm(x, mean, var, weight, bias, {.training = training, .momentum = momentum, .eps = eps});
      },
      "input"_a, "running_mean"_a.none(), "running_var"_a.none(), "weight"_a.none(), "bias"_a.none(), "training"_a,
      "momentum"_a, "eps"_a);
  m.def(
      "layer_norm",
      [](const Tensor& x, const Sizes& shape, const Tensor& weight, const Tensor& bias, double eps) {
        const Unlocked unlocked(x);
        return nn::layer_norm(x, shape, weight, bias, eps);
      },
      "input"_a, "normalized_shape"_a, "weight"_a = nb::none(), "bias"_a = nb::none(), "eps"_a = 1e-5);
  m.def(
      "group_norm",
      [](const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
        const Unlocked unlocked(x);
        return nn::group_norm(x, groups, weight, bias, eps);
      },
      "input"_a, "num_groups"_a, "weight"_a = nb::none(), "bias"_a = nb::none(), "eps"_a = 1e-5);
}

void bind_others(nb::module_& m) {
  m.def(
      "softmax",
      [](const Tensor& x, int dim, std::optional<DType> dtype) {
        const Unlocked unlocked(x);
        return nn::softmax(x, dim, dtype);
      },
      "input"_a, "dim"_a, "dtype"_a = nb::none());
  m.def(
      "log_softmax",
      [](const Tensor& x, int dim, std::optional<DType> dtype) {
        const Unlocked unlocked(x);
        return nn::log_softmax(x, dim, dtype);
      },
      "input"_a, "dim"_a, "dtype"_a = nb::none());
  m.def(
      "dropout", [](const Tensor& x, double p) { return nn::dropout(x, p); }, "input"_a, "p"_a);
  m.def(
      "dropout_",
      [](Tensor x, double p) { return in_place(x, {}, [&](const Tensor& t) { return nn::dropout(t, p); }); }, "input"_a,
      "p"_a);
  m.def(
      "embedding",
      [](const Tensor& weight, const Tensor& indices, std::int64_t padding_idx) {
        return nn::embedding(indices, weight, padding_idx);
      },
      "weight"_a, "indices"_a, "padding_idx"_a = -1);
}

// ---- Losses ----

nn::Reduction reduction_of(const std::string& name) {
  if (name == "mean") return nn::Reduction::kMean;
  if (name == "sum") return nn::Reduction::kSum;
  if (name == "none") return nn::Reduction::kNone;
  throw ValueError(name + " is not a valid value for reduction");
}

using OfClasses = Tensor (*)(const Tensor&, const Tensor&, const nn::CrossEntropySpec&);

template <OfClasses loss>
Tensor loss_of_classes(const Tensor& x, const Tensor& target, const Tensor& weight, std::int64_t ignore_index,
                       const std::string& reduction, double label_smoothing) {
  const Unlocked unlocked(x);
  return loss(x, target,
              {.ignore_index = ignore_index,
               .label_smoothing = label_smoothing,
               .weight = weight,
               .reduction = reduction_of(reduction)});
}

void bind_losses_of_classes(nb::module_& m) {
  m.def("cross_entropy", loss_of_classes<nn::cross_entropy>, "input"_a, "target"_a, "weight"_a.none(), "ignore_index"_a,
        "reduction"_a, "label_smoothing"_a);
  m.def("nll_loss", loss_of_classes<nn::nll_loss>, "input"_a, "target"_a, "weight"_a.none(), "ignore_index"_a,
        "reduction"_a, "label_smoothing"_a = 0.0);
  m.def(
      "binary_cross_entropy",
      [](const Tensor& x, const Tensor& target, const Tensor& weight, const std::string& reduction) {
        return nn::binary_cross_entropy(x, target, weight, reduction_of(reduction));
      },
      "input"_a, "target"_a, "weight"_a.none(), "reduction"_a);
  m.def(
      "binary_cross_entropy_with_logits",
      [](const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
         const std::string& reduction) {
        return nn::binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction_of(reduction));
      },
      "input"_a, "target"_a, "weight"_a.none(), "pos_weight"_a.none(), "reduction"_a);
}

void bind_losses_of_numbers(nb::module_& m) {
  m.def(
      "mse_loss",
      [](const Tensor& x, const Tensor& target, const std::string& reduction) {
        return nn::mse_loss(x, target, reduction_of(reduction));
      },
      "input"_a, "target"_a, "reduction"_a = "mean");
  m.def(
      "l1_loss",
      [](const Tensor& x, const Tensor& target, const std::string& reduction) {
        return nn::l1_loss(x, target, reduction_of(reduction));
      },
      "input"_a, "target"_a, "reduction"_a = "mean");
  m.def(
      "smooth_l1_loss",
      [](const Tensor& x, const Tensor& target, const std::string& reduction, double beta) {
        return nn::smooth_l1_loss(x, target, reduction_of(reduction), beta);
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "beta"_a = 1.0);
  m.def(
      "huber_loss",
      [](const Tensor& x, const Tensor& target, const std::string& reduction, double delta) {
        return nn::huber_loss(x, target, reduction_of(reduction), delta);
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "delta"_a = 1.0);
  m.def(
      "kl_div",
      [](const Tensor& x, const Tensor& target, const std::string& reduction, bool log_target) {
        const bool by_batch = reduction == "batchmean";
        return nn::kl_div(x, target, by_batch ? nn::Reduction::kMean : reduction_of(reduction), log_target, by_batch);
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "log_target"_a = false);
}

}  // namespace

void bind_nn(const Binder& to) {
  bind_products(to.module);
  bind_pools(to.module);
  bind_norms(to.module);
  bind_others(to.module);
  bind_losses_of_classes(to.module);
  bind_losses_of_numbers(to.module);
}

}  // namespace infeed::python

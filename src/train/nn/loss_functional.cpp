#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/nn/functional.h"
#include "train/kernels/cross_entropy.h"
#include "train/tensor/impl.h"

namespace infeed::nn {
namespace {

using Grads = std::span<Tensor>;

struct SoftmaxBackward final : Node {
  explicit SoftmaxBackward(const Tensor& y) : Node("softmax") { save({y}); }
  void backward(Grads grads, Grads inputs) override {
    inputs[0] = kernels::softmax_backward(grads[0].contiguous(), saved(0));
  }
};

struct LogSoftmaxBackward final : Node {
  explicit LogSoftmaxBackward(const Tensor& y) : Node("log_softmax") { save({y}); }
  void backward(Grads grads, Grads inputs) override {
    inputs[0] = kernels::log_softmax_backward(grads[0].contiguous(), saved(0));
  }
};

struct CrossEntropyBackward final : Node {
  CrossEntropyBackward(const Tensor& log_probs, const Tensor& labels, const kernels::CrossEntropySpec& s)
      : Node("cross_entropy"), spec(s) {
    save({log_probs, labels});
  }
  void backward(Grads grads, Grads inputs) override {
    inputs[0] = kernels::cross_entropy_backward(grads[0].item<float>(), saved(0), saved(1), spec);
  }
  kernels::CrossEntropySpec spec;
};

void check_floats(std::string_view op, const Tensor& x) {
  if (x.dtype() != DType::kFloat32 || x.ndim() == 0 || x.numel() == 0)
    throw ConfigError(fmt::format("{}: needs a float32 tensor with elements and dimensions, the input is {}{}.", op,
                                  to_string(x.dtype()), x.shape().str()));
}

// `f` works along the last dimension.
template <class F>
Tensor along(const Tensor& x, int dim, F&& f) {
  return dim == x.ndim() - 1 ? f(x.contiguous()) : f(x.transpose(dim, -1).contiguous()).transpose(dim, -1);
}

void check_labels(const Tensor& logits, const Tensor& labels, const CrossEntropySpec& spec) {
  if (logits.dtype() != DType::kFloat32 || logits.ndim() != 2 || labels.ndim() != 1 || labels.size(0) != logits.size(0))
    throw ConfigError(fmt::format("cross_entropy: needs float32 logits [N, classes] and labels [N], not {}{} and {}{}.",
                                  to_string(logits.dtype()), logits.shape().str(), to_string(labels.dtype()),
                                  labels.shape().str()));
  if (labels.dtype() != DType::kInt64)
    throw ConfigError(fmt::format("cross_entropy: labels must be int64, they are {}; convert with to(DType::kInt64).",
                                  to_string(labels.dtype())));
  if (!(spec.label_smoothing >= 0.0 && spec.label_smoothing <= 1.0))
    throw ConfigError(fmt::format("cross_entropy: label_smoothing {} is outside [0, 1].", spec.label_smoothing));
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  check_floats("softmax", x);
  return along(x, wrap_dim("softmax", dim, x.ndim()), [](const Tensor& rows) {
    Tensor y = kernels::softmax(rows);
    if (needs_graph({rows})) connect(std::make_shared<SoftmaxBackward>(y), {rows}, y);
    return y;
  });
}

Tensor log_softmax(const Tensor& x, int dim) {
  check_floats("log_softmax", x);
  return along(x, wrap_dim("log_softmax", dim, x.ndim()), [](const Tensor& rows) {
    Tensor y = kernels::log_softmax(rows);
    if (needs_graph({rows})) connect(std::make_shared<LogSoftmaxBackward>(y), {rows}, y);
    return y;
  });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropySpec& spec) {
  check_labels(logits, labels, spec);
  const Tensor rows = logits.contiguous();
  const Tensor classes = labels.contiguous();
  const kernels::CrossEntropySpec kernel_spec{spec.ignore_index, spec.label_smoothing};
  const Tensor log_probs = kernels::log_softmax(rows);
  Tensor loss = kernels::cross_entropy(log_probs, classes, kernel_spec);
  if (needs_graph({rows}))
    connect(std::make_shared<CrossEntropyBackward>(log_probs, classes, kernel_spec), {rows}, loss);
  return loss;
}

}  // namespace infeed::nn

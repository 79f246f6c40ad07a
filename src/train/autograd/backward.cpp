#include <fmt/format.h>

#include <queue>
#include <unordered_map>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "train/autograd/accumulate_grad.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

struct ByNumber {
  bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const noexcept {
    return a->number() < b->number();
  }
};

/// One run over the graph. A node waits, with the gradients that have arrived, until every node with a greater number
/// was visited: those are all that can still send to it.
class Backward {
 public:
  explicit Backward(const BackwardOptions& options) : options_(options) {}

  void send(const std::shared_ptr<Node>& node, int output_nr, Tensor grad) {
    auto [entry, is_new] = arrived_.try_emplace(node.get());
    if (is_new) {
      entry->second.resize(static_cast<std::size_t>(node->num_outputs()));
      waiting_.push(node);
    }
    accumulate(entry->second[static_cast<std::size_t>(output_nr)], std::move(grad));
  }

  void run() {
    while (!waiting_.empty()) {
      const std::shared_ptr<Node> node = waiting_.top();
      waiting_.pop();
      auto arrived = arrived_.extract(node.get());
      visit(*node, arrived.mapped());
    }
  }

 private:
  void visit(Node& node, std::vector<Tensor>& grads) {
    std::vector<Tensor> inputs(node.next().size());
    node.backward(grads, inputs);
    if (!options_.retain_graph) node.release();
    grads.clear();  // memory for the next node
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Edge& edge = node.next()[i];
      if (edge.node != nullptr && inputs[i].defined()) send(edge.node, edge.output_nr, std::move(inputs[i]));
    }
  }

  BackwardOptions options_;
  std::unordered_map<Node*, std::vector<Tensor>> arrived_;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, ByNumber> waiting_;
};

}  // namespace

void accumulate(Tensor& into, Tensor grad) {
  if (!into.defined()) {
    into = std::move(grad);
  } else if (into.is_unique() && is_dense(into.shape(), into.strides())) {
    kernels::binary_into(kernels::BinaryOp::kAdd, into, grad);
    into.storage()->bump_version();
  } else {
    into = kernels::binary(kernels::BinaryOp::kAdd, into, grad);
  }
}

void AccumulateGrad::backward(std::span<Tensor> grad_outputs, std::span<Tensor> /*grad_inputs*/) {
  Tensor& grad = grad_outputs[0];
  if (!grad.defined()) return;
  TensorImpl& leaf = leaf_.impl();
  if (leaf.grad.defined()) {
    kernels::binary_into(kernels::BinaryOp::kAdd, leaf.grad, grad);
    leaf.grad.storage()->bump_version();
    return;
  }
  // Take the memory over if it is nobody else's and lies as the leaf does; a view's other part must not be kept alive.
  const bool mine = grad.is_unique() && grad.strides() == leaf.strides && grad.storage()->nbytes() == grad.nbytes();
  if (mine) {
    leaf.grad = std::move(grad);
    return;
  }
  Tensor copy = Tensor::empty_like(leaf_);
  copy.copy_(grad);
  leaf.grad = std::move(copy);
}

void Tensor::backward(const BackwardOptions& options) const {
  if (numel() != 1)
    throw ConfigError(
        fmt::format("backward: shape {} has {} elements; reduce it to one (mean, sum, a loss) or pass the "
                    "gradient of this tensor.",
                    shape().str(), numel()));
  backward(full(shape(), 1.0, dtype()), options);
}

void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  if (!requires_grad())
    throw ConfigError(
        "backward: this tensor does not require grad: no input did, or it was made under NoGradGuard or detached.");
  if (gradient.shape() != shape() || gradient.dtype() != dtype())
    throw ConfigError(fmt::format("backward: the gradient is {}{}, the tensor is {}{}.", to_string(gradient.dtype()),
                                  gradient.shape().str(), to_string(dtype()), shape().str()));
  const NoGradGuard no_grad;
  if (grad_fn() == nullptr) {
    std::vector<Tensor> grads{gradient.detach()};
    AccumulateGrad(*this).backward(grads, {});
    return;
  }
  Backward run(options);
  run.send(grad_fn(), impl().output_nr, gradient.detach());
  run.run();
}

}  // namespace infeed

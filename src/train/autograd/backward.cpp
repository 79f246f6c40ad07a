#include "infeed/train/autograd/backward.h"

#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "infeed/train/autograd/anomaly.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/tensor/warning.h"
#include "train/autograd/accumulate_grad.h"
#include "train/autograd/extras.h"
#include "train/kernels/copy.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"

namespace infeed {
namespace {

struct ByNumber {
  bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const noexcept {
    return a->number() < b->number();
  }
};

// A gradient as the input wants it: summed where the input was broadcast, in its dtype.
Tensor fitted(Tensor grad, const OutputInfo& input, const Node& from, std::size_t index) {
  if (grad.shape() != input.shape) {
    require(is_expandable_to(input.shape, grad.shape()),
            "Function {} returned an invalid gradient at index {} - got {} but expected shape compatible with {}",
            from.name(), index, grad.shape(), input.shape);
    grad = sum_to(grad, input.shape);
  }
  return grad.dtype() == input.dtype ? grad : grad.to(input.dtype);
}

bool has_nan(const Tensor& grad) {
  const NoGradGuard no_grad;
  return any(ne(grad.detach(), grad.detach())).item<bool>();
}

}  // namespace

/// One run over the graph. A node waits, with the gradients that have arrived, until every node with a greater number
/// was visited: those are all that can still send to it.
class Backward {
 public:
  Backward(bool retain_graph, bool create_graph) : retain_(retain_graph || create_graph), mode_(create_graph) {}

  /// Gradients of these edges are wanted, not those of leaves. Nodes that do not lead to one are not run.
  void capture(std::vector<Edge> edges, bool accumulate_leaves) {
    captured_ = std::move(edges);
    results_.resize(captured_.size());
    accumulate_leaves_ = accumulate_leaves;
  }

  void send(const std::shared_ptr<Node>& node, int output_nr, Tensor grad) {
    auto [entry, is_new] = arrived_.try_emplace(node.get());
    if (is_new) {
      entry->second.resize(static_cast<std::size_t>(node->num_outputs()));
      waiting_.push(node);
    }
    accumulate(entry->second[static_cast<std::size_t>(output_nr)], std::move(grad));
  }

  std::vector<Tensor> run() {
    if (!captured_.empty()) find_needed();
    while (!waiting_.empty()) {
      const std::shared_ptr<Node> node = waiting_.top();
      waiting_.pop();
      auto arrived = arrived_.extract(node.get());
      visit(*node, arrived.mapped());
    }
    return std::move(results_);
  }

 private:
  // Depth first without recursion: a node is needed if an edge of it is captured or leads to a needed one.
  void find_needed() {
    std::unordered_set<const Node*> targets;
    for (const Edge& edge : captured_) targets.insert(edge.node.get());
    std::unordered_set<const Node*> seen;
    std::vector<std::pair<const Node*, std::size_t>> path;
    for (const auto& [root, grads] : arrived_) {
      if (seen.insert(root).second) path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [node, i] = path.back();
        if (i < node->next().size()) {
          const Node* const next = node->next()[i++].node.get();
          if (next != nullptr && seen.insert(next).second) path.emplace_back(next, 0);
          continue;
        }
        for (const Edge& edge : node->next()) {
          if (edge.node != nullptr && (targets.contains(edge.node.get()) || needed_.contains(edge.node.get())))
            needed_.insert(node);
        }
        path.pop_back();
      }
    }
    if (!accumulate_leaves_) return;
    needed_.insert(targets.begin(), targets.end());
  }

  void visit(Node& node, std::vector<Tensor>& grads) {
    prepare(node, grads);
    if (!captured_.empty() && !needed_.contains(&node)) return;
    std::vector<Tensor> inputs(node.next().size());
    call(node, grads, inputs);
    if (!retain_) node.release();
    grads.clear();  // memory for the next node
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Edge& edge = node.next()[i];
      if (edge.node == nullptr || !inputs[i].defined()) continue;
      send(edge.node, edge.output_nr, fitted(std::move(inputs[i]), edge.node->output(edge.output_nr), node, i));
    }
  }

  // Hooks of the tensors that the node made, then what they leave is retained and captured.
  void prepare(Node& node, std::vector<Tensor>& grads) {
    if (const Tensor leaf = node.variable(); leaf.defined()) run_hooks(leaf.impl().hooks, grads[0]);
    if (Node::Extras* const extras = node.extras_.get()) {
      for (auto& [nr, list] : extras->tensor_hooks) {
        if (Tensor& grad = grads[static_cast<std::size_t>(nr)]; grad.defined()) run_hooks(list, grad);
      }
      for (auto& [nr, weak] : extras->retained) {
        const auto tensor = weak.lock();
        const Tensor& grad = grads[static_cast<std::size_t>(nr)];
        if (tensor != nullptr && grad.defined()) tensor->grad = tensor->grad.defined() ? tensor->grad + grad : grad;
      }
      for (auto& entry : extras->prehooks) entry.second(grads);
    }
    for (std::size_t i = 0; i < captured_.size(); ++i) {
      if (captured_[i].node.get() == &node) results_[i] = grads[static_cast<std::size_t>(captured_[i].output_nr)];
    }
  }

  void call(Node& node, std::vector<Tensor>& grads, std::vector<Tensor>& inputs) {
    const bool watched = is_anomaly_enabled();
    const auto has_hooks = [&] { return node.extras_ != nullptr && !node.extras_->hooks.empty(); };
    const std::vector<Tensor> outputs = has_hooks() ? grads : std::vector<Tensor>();
    try {
      node.backward(grads, inputs);
    } catch (...) {
      if (watched)
        warn(fmt::format("Error detected in {}. Traceback of forward call that caused the error:\n{}", node.name(),
                         node.trace()));
      throw;
    }
    if (has_hooks()) {
      for (auto& entry : node.extras_->hooks) entry.second(inputs, outputs);
    }
    if (watched && is_anomaly_check_nan_enabled()) check_nan(node, inputs);
  }

  static void check_nan(const Node& node, const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined() || !has_nan(inputs[i])) continue;
      warn(fmt::format("Error detected in {}. Traceback of forward call that caused the error:\n{}", node.name(),
                       node.trace()));
      throw RuntimeError(fmt::format("Function '{}' returned nan values in its {}th output.", node.name(), i));
    }
  }

  bool retain_;
  GradModeGuard mode_;
  bool accumulate_leaves_ = false;
  std::vector<Edge> captured_;
  std::vector<Tensor> results_;
  std::unordered_set<const Node*> needed_;
  std::unordered_map<Node*, std::vector<Tensor>> arrived_;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, ByNumber> waiting_;
};

namespace {

// The gradient to begin with: the given one, checked, or 1.
Tensor starting_grad(const Tensor& output, const std::vector<Tensor>& given, std::size_t i) {
  require(output.requires_grad(), "element {} of tensors does not require grad and does not have a grad_fn", i);
  if (i >= given.size() || !given[i].defined()) {
    require(output.numel() == 1, "grad can be implicitly created only for scalar outputs");
    return Tensor::full(output.shape(), 1.0, output.options());
  }
  const auto list = [](const Shape& shape) { return fmt::format("torch.Size({})", shape); };
  require(given[i].shape() == output.shape(),
          "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", i,
          list(given[i].shape()), i, list(output.shape()));
  return given[i].dtype() == output.dtype() ? given[i] : given[i].to(output.dtype());
}

std::vector<Tensor> run(std::span<const Tensor> outputs, const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options, std::vector<Edge> wanted, bool accumulate_leaves) {
  std::vector<Tensor> grads;
  for (std::size_t i = 0; i < outputs.size(); ++i) grads.push_back(starting_grad(outputs[i], grad_outputs, i));
  Backward backward(options.retain_graph, options.create_graph);
  backward.capture(std::move(wanted), accumulate_leaves);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Edge edge = gradient_edge(outputs[i]);
    backward.send(edge.node, edge.output_nr, options.create_graph ? grads[i] : grads[i].detach());
    grads[i] = Tensor();
  }
  return backward.run();
}

std::vector<Edge> edges_of(std::span<const Tensor> inputs) {
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) {
    require(input.requires_grad(), "One of the differentiated Tensors does not require grad");
    edges.push_back(gradient_edge(input));
  }
  return edges;
}

}  // namespace

void accumulate(Tensor& into, Tensor grad) {
  if (!into.defined()) {
    into = std::move(grad);
  } else if (!grad_enabled() && into.is_unique() && is_dense(into.shape(), into.strides())) {
    kernels::binary(kernels::BinaryOp::kAdd, into, into, grad);
    into.storage()->bump_version();
  } else {
    into = into + grad;
  }
}

AccumulateGrad::AccumulateGrad(Tensor leaf) : Node("AccumulateGrad"), leaf_(std::move(leaf)) {
  set_inputs(Operands{});
  add_output(OutputInfo{leaf_.shape(), leaf_.dtype(), leaf_.device()});
}

void AccumulateGrad::backward(std::span<Tensor> grad_outputs, std::span<Tensor> /*grad_inputs*/) {
  if (!grad_outputs[0].defined()) return;
  add(std::move(grad_outputs[0]));
  if (const auto& list = leaf_.impl().post_hooks; list != nullptr) {
    const auto hooks = list->hooks;
    for (const auto& entry : hooks) (void)entry.second(leaf_);
  }
}

void AccumulateGrad::add(Tensor grad) {
  TensorImpl& leaf = leaf_.impl();
  if (leaf.grad.defined()) {
    if (grad_enabled()) {
      leaf.grad = leaf.grad + grad;
      return;
    }
    kernels::binary(kernels::BinaryOp::kAdd, leaf.grad, leaf.grad, grad);
    leaf.grad.storage()->bump_version();
    return;
  }
  // Take the memory over if it is nobody else's and lies as the leaf does; a view's other part must not be kept alive.
  const bool mine = grad.is_unique() && grad.strides() == leaf.strides && grad.storage()->nbytes() == grad.nbytes();
  if (mine || grad_enabled()) {
    leaf.grad = std::move(grad);
    return;
  }
  Tensor copy = Tensor::empty_like(leaf_);
  kernels::copy(copy, grad);
  leaf.grad = std::move(copy);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const std::vector<Tensor>& grad_outputs, const GradOptions& options) {
  require(!inputs.empty(), "grad requires non-empty inputs.");
  std::vector<Tensor> grads =
      run(outputs, grad_outputs, {options.retain_graph, options.create_graph}, edges_of(inputs), false);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) continue;
    require(
        options.allow_unused || options.materialize_grads,
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior.");
    if (options.materialize_grads) grads[i] = Tensor::zeros(inputs[i].shape(), inputs[i].options());
  }
  return grads;
}

void backward(std::span<const Tensor> outputs, const std::vector<Tensor>& grad_outputs, const BackwardOptions& options,
              std::span<const Tensor> inputs) {
  run(outputs, grad_outputs, options, edges_of(inputs), true);
}

void Tensor::backward(const BackwardOptions& options) const { infeed::backward({this, 1}, {}, options); }

void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  infeed::backward({this, 1}, {gradient}, options);
}

}  // namespace infeed

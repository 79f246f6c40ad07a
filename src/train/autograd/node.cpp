#include "infeed/train/autograd/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/autograd/accumulate_grad.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

std::atomic<std::uint64_t> next_number{1};

// Where the gradient of `tensor` goes. A leaf's accumulator is made on first use, so before the node that leads to it.
Edge edge_to(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad()) return {};
  TensorImpl& impl = tensor.impl();
  if (impl.grad_fn != nullptr) return {impl.grad_fn, impl.output_nr};
  std::shared_ptr<Node> accumulator = impl.accumulator.lock();
  if (accumulator == nullptr) {
    accumulator = std::make_shared<AccumulateGrad>(tensor);
    impl.accumulator = accumulator;
  }
  return {std::move(accumulator), 0};
}

}  // namespace

SavedTensor::SavedTensor(const Tensor& tensor) : saved_undefined_(!tensor.defined()) {
  if (saved_undefined_) return;
  tensor_ = tensor.detach();
  version_ = tensor.version();
}

const Tensor& SavedTensor::get(std::string_view node_name) const {
  if (saved_undefined_) return tensor_;
  if (!tensor_.defined())
    throw ConfigError(
        fmt::format("backward through {} a second time: what it saved was freed by the first. Pass "
                    "{{.retain_graph = true}} to the first call.",
                    node_name));
  if (tensor_.version() != version_)
    throw ConfigError(
        fmt::format("backward of {} needs a tensor of shape {} as it was at version {}, but it was modified in "
                    "place since and is at version {}. Clone it before the change, or change it after backward().",
                    node_name, tensor_.shape().str(), version_, tensor_.version()));
  return tensor_;
}

Node::Node(std::string_view name, int num_outputs) : name_(name), num_outputs_(num_outputs), number_(0) {}

// The last owner of a chain's head would free it by recursion as deep as the chain is long. Instead the outermost
// destructor collects what the inner ones let go.
Node::~Node() {
  thread_local std::vector<std::shared_ptr<Node>>* collector = nullptr;
  if (collector != nullptr) {
    for (Edge& edge : next_) collector->push_back(std::move(edge.node));
    return;
  }
  std::vector<std::shared_ptr<Node>> rest;
  collector = &rest;
  for (Edge& edge : next_) rest.push_back(std::move(edge.node));
  while (!rest.empty()) {
    const std::shared_ptr<Node> node = std::move(rest.back());
    rest.pop_back();
  }
  collector = nullptr;
}

void Node::save(std::initializer_list<Tensor> tensors) {
  saved_.reserve(tensors.size());
  for (const Tensor& tensor : tensors) saved_.emplace_back(tensor);
}

void Node::release() noexcept {
  for (SavedTensor& saved : saved_) saved.release();
}

void Node::set_next(std::vector<Edge> edges) noexcept {
  next_ = std::move(edges);
  number_ = next_number.fetch_add(1, std::memory_order_relaxed);
}

bool needs_graph(std::initializer_list<Tensor> inputs) {
  return grad_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); });
}

void connect(const std::shared_ptr<Node>& node, std::initializer_list<Tensor> inputs, const Tensor& output) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Tensor& input : inputs) edges.push_back(edge_to(input));
  node->set_next(std::move(edges));
  TensorImpl& impl = output.impl();
  impl.grad_fn = node;
  impl.requires_grad = true;
}

}  // namespace infeed

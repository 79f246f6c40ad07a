#include "infeed/train/autograd/node.h"

#include <algorithm>
#include <atomic>

#include "infeed/train/autograd/anomaly.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/autograd/accumulate_grad.h"
#include "train/autograd/extras.h"
#include "train/tensor/check.h"

namespace infeed {
namespace {

std::atomic<std::uint64_t> next_number{1};

void remove_id(auto& list, std::uint64_t id) {
  list.erase(std::remove_if(list.begin(), list.end(), [id](const auto& entry) { return entry.first == id; }),
             list.end());
}

}  // namespace

void HookHandle::remove() {
  if (const auto list = list_.lock()) remove_id(list->hooks, id_);
}

HookHandle add_hook(std::shared_ptr<HookList>& list, TensorHook hook) {
  if (list == nullptr) list = std::make_shared<HookList>();
  list->hooks.emplace_back(list->next_id, std::move(hook));
  return {list, list->next_id++};
}

void run_hooks(const std::shared_ptr<HookList>& list, Tensor& grad) {
  if (list == nullptr) return;
  const auto hooks = list->hooks;  // a hook may remove itself
  for (const auto& entry : hooks) {
    if (Tensor changed = entry.second(grad); changed.defined()) grad = std::move(changed);
  }
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad()) return {};
  TensorImpl& impl = tensor.impl();
  if (const auto& grad_fn = tensor.grad_fn(); grad_fn != nullptr) return {grad_fn, impl.output_nr};
  std::shared_ptr<Node> accumulator = impl.accumulator.lock();
  if (accumulator == nullptr) {
    accumulator = std::make_shared<AccumulateGrad>(tensor);
    impl.accumulator = accumulator;
  }
  return {std::move(accumulator), 0};
}

SavedTensor::SavedTensor(const Tensor& tensor, int output_nr)
    : output_nr_(output_nr), saved_undefined_(!tensor.defined()) {
  if (saved_undefined_) return;
  require(
      !tensor.is_inference(),
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
      "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
      "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  tensor_ = output_nr >= 0 ? tensor.detach() : tensor;
  version_ = tensor.version();
}

Tensor SavedTensor::unpack(const Node& owner) const {
  if (saved_undefined_) return {};
  require(
      tensor_.defined(),
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
      "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
      "saved tensors after calling backward.");
  if (tensor_.version() != version_) [[unlikely]] {
    const Node* const made_by = output_nr_ >= 0 ? &owner : tensor_.grad_fn().get();
    const int output_nr = output_nr_ >= 0 ? output_nr_ : tensor_.output_nr();
    throw RuntimeError(
        fmt::format("one of the variables needed for gradient computation has been modified by an inplace operation: "
                    "[{} {}]{} is at "
                    "version {}; expected version {} instead. Hint: {}",
                    legacy_name(tensor_.dtype()), tensor_.shape(),
                    made_by == nullptr ? "" : fmt::format(", which is output {} of {},", output_nr, made_by->name()),
                    tensor_.version(), version_,
                    is_anomaly_enabled()
                        ? "the backtrace further above shows the operation that failed to compute its gradient. The "
                          "variable in question was changed in there or anywhere later. Good luck!"
                        : "enable anomaly detection to find the operation that failed to compute its gradient, with "
                          "torch.autograd.set_detect_anomaly(True)."));
  }
  if (output_nr_ < 0 || !grad_enabled()) return tensor_;
  Tensor linked = tensor_.detach();
  linked.impl().grad_fn = std::const_pointer_cast<Node>(owner.shared_from_this());
  linked.impl().output_nr = output_nr_;
  linked.impl().requires_grad = true;
  return linked;
}

Node::Node(std::string_view name) : name_(name) {
  if (is_anomaly_enabled()) [[unlikely]]
    extras().trace = forward_trace();
}

// The last owner of a chain's head would free it by recursion as deep as the chain is long. Instead the outermost
// destructor collects what the inner ones let go: their edges, and the tensors they saved, which own nodes, too.
Node::~Node() {
  struct Rest {
    Few<Edge, 3> edges;
    Few<SavedTensor, 2> saved;
  };
  thread_local std::vector<Rest>* collector = nullptr;
  if (next_.empty() && saved_.empty()) return;
  if (collector != nullptr) {
    collector->push_back({std::move(next_), std::move(saved_)});
    return;
  }
  std::vector<Rest> rest;
  collector = &rest;
  { const Rest own{std::move(next_), std::move(saved_)}; }
  while (!rest.empty()) {
    const Rest part(std::move(rest.back()));
    rest.pop_back();
  }
  collector = nullptr;
}

void Node::save(Operands tensors, std::span<const Tensor> outputs) {
  for (const auto [tensor] : tensors) {
    const auto output = std::find_if(outputs.begin(), outputs.end(), [tensor = tensor](const Tensor& out) {
      return tensor->defined() && out.is_same(*tensor);
    });
    saved_.push_back({*tensor, output == outputs.end() ? -1 : static_cast<int>(output - outputs.begin())});
  }
}

void Node::release() noexcept {
  for (SavedTensor& saved : saved_) saved.release();
}

void Node::set_inputs(std::span<const Tensor> inputs) {
  for (const Tensor& input : inputs) next_.push_back(gradient_edge(input));
  number_ = next_number.fetch_add(1, std::memory_order_relaxed);
}

void Node::set_inputs(Operands inputs) {
  for (const auto [input] : inputs) next_.push_back(gradient_edge(*input));
  number_ = next_number.fetch_add(1, std::memory_order_relaxed);
}

void Node::add_output(const Tensor& output) {
  TensorImpl& impl = output.impl();
  if (is_floating_point(impl.dtype)) {
    impl.grad_fn = shared_from_this();
    impl.output_nr = num_outputs();
    impl.requires_grad = true;
  }
  outputs_.push_back({impl.shape, impl.dtype, impl.storage->device()});
}

Node::Extras& Node::extras() {
  if (extras_ == nullptr) extras_ = std::make_unique<Extras>();
  return *extras_;
}

HookHandle Node::register_tensor_hook(int output_nr, TensorHook hook) {
  auto& all = extras().tensor_hooks;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == output_nr; });
  if (found != all.end()) return add_hook(found->second, std::move(hook));
  all.emplace_back(output_nr, nullptr);
  return add_hook(all.back().second, std::move(hook));
}

void Node::retain_grad(int output_nr, std::weak_ptr<TensorImpl> tensor) {
  extras().retained.emplace_back(output_nr, std::move(tensor));
}

std::uint64_t Node::register_hook(NodeHook hook) {
  extras().hooks.emplace_back(extras().next_id, std::move(hook));
  return extras().next_id++;
}

std::uint64_t Node::register_prehook(NodePreHook hook) {
  extras().prehooks.emplace_back(extras().next_id, std::move(hook));
  return extras().next_id++;
}

void Node::remove_hook(std::uint64_t id) {
  remove_id(extras().hooks, id);
  remove_id(extras().prehooks, id);
}

const std::string& Node::trace() const {
  static const std::string none;
  return extras_ == nullptr ? none : extras_->trace;
}

static bool wants_grad(const Tensor& t) { return t.defined() && t.requires_grad(); }

bool needs_graph(std::span<const Tensor> inputs) noexcept {
  return grad_enabled() && std::any_of(inputs.begin(), inputs.end(), wants_grad);
}

bool needs_graph(Operands inputs) noexcept {
  return grad_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const Operand& x) { return wants_grad(*x.tensor); });
}

}  // namespace infeed

#include "infeed/train/autograd/function.h"

#include <algorithm>

#include "infeed/train/autograd/in_place.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

bool contains(std::span<const Tensor> list, const Tensor& x) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& t) { return t.defined() && t.is_same(x); });
}

}  // namespace

std::vector<Tensor> FunctionContext::saved_tensors() const {
  std::vector<Tensor> tensors;
  if (node_ == nullptr) return to_save_;  // nothing was recorded
  for (int i = 0; i < node_->num_saved(); ++i) tensors.push_back(node_->saved(i));
  return tensors;
}

bool FunctionContext::needs_input_grad(int i) const { return needed_.at(static_cast<std::size_t>(i)); }

void CustomNode::begin(std::span<const Tensor> inputs) {
  for (const Tensor& input : inputs)
    context_.needed_.push_back(grad_enabled() && input.defined() && input.requires_grad());
}

void CustomNode::finish(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
  if (!needs_graph(inputs)) return;
  for (const Tensor& input : context_.dirty_) check_in_place(input);
  set_inputs(inputs);
  for (Tensor& output : outputs) {
    is_tensor_.push_back(output.defined());
    if (output.defined())
      output = attach(inputs, output);
    else
      add_output(OutputInfo{});
  }
  for (const Tensor& tensor : context_.to_save_) save({tensor}, outputs);
  context_.to_save_.clear();
  context_.constant_.clear();
  context_.dirty_.clear();
  context_.node_ = this;
}

Tensor CustomNode::attach(std::span<const Tensor> inputs, Tensor output) {
  if (contains(context_.constant_, output) || !is_floating_point(output.dtype())) {
    add_output(OutputInfo{output.shape(), output.dtype(), output.device()});
    return output;
  }
  if (contains(context_.dirty_, output)) {
    const Tensor after = output.detach();
    add_output(after);
    rebase_history(output, after);
    return output;
  }
  if (contains(inputs, output))
    output = tracked_alias(output, 0, output.shape(), output.strides());
  else if (output.requires_grad())
    output = output.detach();
  add_output(output);
  return output;
}

void CustomNode::backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) {
  std::vector<Tensor> grads(grad_outputs.begin(), grad_outputs.end());
  for (int i = 0; context_.materialize_ && i < num_outputs(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_tensor_[at] && !grads[at].defined())
      grads[at] = Tensor::zeros(output(i).shape, TensorOptions(output(i).dtype, output(i).device));
  }
  std::vector<Tensor> result = run_backward(context_, std::move(grads));
  while (result.size() > grad_inputs.size() && !result.back().defined()) result.pop_back();
  require(result.size() == grad_inputs.size(),
          "function {} returned an incorrect number of gradients (expected {}, got {})", name(), grad_inputs.size(),
          result.size());
  std::move(result.begin(), result.end(), grad_inputs.begin());
}

}  // namespace infeed

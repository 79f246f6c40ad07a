#pragma once
/// How operations record themselves: a name, the inputs, what to save, and a formula.

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "infeed/train/autograd/node.h"

namespace infeed {

/// What a formula works with. Formulas are written in operations of Tensor, so create_graph records them.
struct Pass {
  Node& node;
  std::span<Tensor> grads;   ///< of the outputs
  std::span<Tensor> inputs;  ///< of the inputs, to be set

  [[nodiscard]] const Tensor& g() const { return grads[0]; }
  [[nodiscard]] bool needs(int i) const { return node.needs_input_grad(i); }
  [[nodiscard]] Tensor saved(int i) const { return node.saved(i); }
  void give(int i, Tensor grad) const { inputs[static_cast<std::size_t>(i)] = std::move(grad); }
};

/// Its formula takes a Pass, and either gives what is needed or returns the gradient of the only input.
template <class Formula>
class FormulaNode final : public Node {
 public:
  FormulaNode(std::string_view name, Formula formula) : Node(name), formula_(std::move(formula)) {}
  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Pass pass{*this, grads, inputs};
    if constexpr (std::is_void_v<std::invoke_result_t<const Formula&, const Pass&>>)
      formula_(pass);
    else
      inputs[0] = formula_(pass);
  }

 private:
  Formula formula_;
};

/// `out`, recorded as made from `inputs` if any of them requires grad.
template <class Formula>
Tensor record(std::string_view name, Operands inputs, Tensor out, Operands saved, Formula formula) {
  if (!needs_graph(inputs) || !is_floating_point(out.dtype())) return out;
  const auto node = std::make_shared<FormulaNode<Formula>>(name, std::move(formula));
  node->save(saved, {&out, 1});
  node->set_inputs(inputs);
  node->add_output(out);
  return out;
}

/// The same for lists: joins of many inputs, splits into many outputs.
template <class Formula>
void record_all(std::string_view name, std::span<const Tensor> inputs, std::span<const Tensor> outs, Operands saved,
                Formula formula) {
  if (!needs_graph(inputs)) return;
  const auto node = std::make_shared<FormulaNode<Formula>>(name, std::move(formula));
  node->save(saved, outs);
  node->set_inputs(inputs);
  for (const Tensor& out : outs) node->add_output(out);
}

/// `value` where `other` wants a gradient: an operand is saved only for the sake of the other one.
[[nodiscard]] inline const Tensor& saved_for(const Tensor& other, const Tensor& value) {
  static const Tensor none;
  return other.requires_grad() ? value : none;  // an operand. NOLINT(bugprone-return-const-ref-from-parameter)
}

}  // namespace infeed

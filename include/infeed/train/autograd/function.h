#pragma once
/// Operations of one's own with a backward of one's own.

#include <any>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// What forward leaves for backward. It lives in the node.
class INFEED_API FunctionContext {
 public:
  /// Call in forward, with inputs and outputs only; what else backward needs goes into `extra`.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// In backward. Throws RuntimeError after the graph was freed, or if one was written in place.
  [[nodiscard]] std::vector<Tensor> saved_tensors() const;
  [[nodiscard]] bool needs_input_grad(int i) const;
  /// Undefined gradients of outputs become zeros before backward. Default true.
  void set_materialize_grads(bool materialize) { materialize_ = materialize; }
  void mark_non_differentiable(std::vector<Tensor> outputs) { constant_ = std::move(outputs); }
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }  ///< written in place and returned

  std::any extra;

 private:
  friend class CustomNode;
  Node* node_ = nullptr;
  std::vector<Tensor> to_save_, constant_, dirty_;
  std::vector<bool> needed_;
  bool materialize_ = true;
};

/// The node of such an operation; a binding derives from it for functions of its language.
class INFEED_API CustomNode : public Node {
 public:
  explicit CustomNode(std::string name) : Node("CustomNode"), own_name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return own_name_; }
  [[nodiscard]] FunctionContext& context() noexcept { return context_; }

  /// Runs `forward` without recording, then puts this node between inputs and outputs. Call it once, on a shared_ptr.
  /// An undefined output stands for what is no tensor. An input that is returned becomes a view of itself, unless it
  /// was marked as dirty: then it is the same tensor, now made by this node.
  template <class Forward>
  std::vector<Tensor> apply(std::span<const Tensor> inputs, Forward&& forward) {
    begin(inputs);
    std::vector<Tensor> outputs;
    {
      const NoGradGuard no_grad;
      outputs = std::forward<Forward>(forward)(context_);
    }
    finish(inputs, outputs);
    return outputs;
  }

  void backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) final;

 protected:
  /// One gradient per input, undefined for none.
  virtual std::vector<Tensor> run_backward(FunctionContext& context, std::vector<Tensor> grads) = 0;

 private:
  void begin(std::span<const Tensor> inputs);
  void finish(std::span<const Tensor> inputs, std::vector<Tensor>& outputs);

  [[nodiscard]] Tensor attach(std::span<const Tensor> inputs, Tensor output);

  std::string own_name_;
  FunctionContext context_;
  std::vector<bool> is_tensor_;  // of each output
};

/// For C++:
///
///   struct Cube : Function<Cube> {
///     static constexpr std::string_view kName = "Cube";
///     static std::vector<Tensor> forward(FunctionContext& c, const std::vector<Tensor>& in) {
///       c.save_for_backward({in[0]});
///       return {in[0] * in[0] * in[0]};
///     }
///     static std::vector<Tensor> backward(FunctionContext& c, const std::vector<Tensor>& g) {
///       const Tensor x = c.saved_tensors()[0];
///       return {g[0] * 3.0 * x * x};
///     }
///   };
///   Tensor y = Cube::apply({x})[0];  // y.grad_fn()->name() == "CubeBackward"
template <class Derived>
class Function {
 public:
  static std::vector<Tensor> apply(const std::vector<Tensor>& inputs) {
    struct Own final : CustomNode {
      Own() : CustomNode(std::string(Derived::kName) + "Backward") {}
      std::vector<Tensor> run_backward(FunctionContext& context, std::vector<Tensor> grads) override {
        return Derived::backward(context, grads);
      }
    };
    return std::make_shared<Own>()->apply(inputs, [&](FunctionContext& c) { return Derived::forward(c, inputs); });
  }
};

}  // namespace infeed

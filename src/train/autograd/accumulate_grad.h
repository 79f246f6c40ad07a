#pragma once
/// The end of the graph: a leaf and its grad.

#include <span>

#include "infeed/train/autograd/node.h"

namespace infeed {

/// Adds what arrives to the leaf's grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf);
  void backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) override;
  [[nodiscard]] Tensor variable() const override { return leaf_; }

 private:
  void add(Tensor grad);
  Tensor leaf_;
};

/// into += grad, taking grad itself where nothing is there yet. Written in place only where nobody else can see it and
/// nothing is recorded.
void accumulate(Tensor& into, Tensor grad);

}  // namespace infeed

#pragma once
/// The end of the graph: a leaf and its grad.

#include <span>

#include "infeed/train/autograd/node.h"

namespace infeed {

/// Adds what arrives to the leaf's grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf) : Node("accumulate_grad"), leaf_(std::move(leaf)) { set_next({}); }
  void backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) override;

 private:
  Tensor leaf_;
};

/// into += grad, taking grad itself where nothing is there yet. Written in place only where nobody else can see it.
void accumulate(Tensor& into, Tensor grad);

}  // namespace infeed

#pragma once
/// What a step must at least do. A list of calls is built once; a step makes them in order.

#include <functional>
#include <utility>
#include <vector>

#include "infeed/train/optim/fused.h"
#include "infeed/train/tensor/tensor.h"
#include "train/kernels/primitive.h"

namespace bench {

using infeed::Shape;
using infeed::Tensor;
namespace kernels = infeed::kernels;

inline Tensor buffer(const Shape& shape) { return Tensor::uniform(shape, -0.1, 0.1); }

class Bare {
 public:
  /// A step: the calls, then the optimizer.
  void operator()() const;

  /// A weight: its gradient, which the optimizer reads.
  Tensor weight(const Tensor& w);
  void call(std::function<void()> what) { calls_.push_back(std::move(what)); }
  void run(kernels::Primitive primitive, std::vector<std::pair<int, Tensor>> arguments);
  void product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias = {}, bool relu = false);

  /// x [rows, in] -> [rows, out]; g: the gradient of the result.
  struct Linear {
    Tensor y, g;
  };
  Linear linear(const Tensor& x, std::int64_t out, const Tensor& x_grad, bool relu = false);
  void loss(const Tensor& logits, const Tensor& g, const Tensor& labels);

  void later(std::function<void()> backward) { backward_.push_back(std::move(backward)); }
  /// Forward is listed; now what was put off, last first.
  void list_backward();

 private:
  std::vector<std::function<void()>> calls_, backward_;
  std::vector<infeed::optim::SgdRow> rows_;
};

/// The network of pictures, forward and backward.
void list_resnet(Bare& list, const Tensor& labels);

}  // namespace bench

#pragma once
/// What a step must at least do. A list of calls is built once; a step makes them in order.

#include <functional>
#include <utility>
#include <vector>

#include "infeed/train/optim/fused.h"
#include "infeed/train/tensor/tensor.h"
#include "train/kernels/primitive.h"

namespace bench {

inline infeed::Tensor buffer(const infeed::Shape& shape) { return infeed::Tensor::uniform(shape, -0.1, 0.1); }

class Bare {
 public:
  /// A step: the calls, then the optimizer.
  void operator()() const;

  /// A weight: its gradient, which the optimizer reads.
  infeed::Tensor weight(const infeed::Tensor& w);
  void call(std::function<void()> what) { calls_.push_back(std::move(what)); }
  void run(infeed::kernels::Primitive primitive, std::vector<std::pair<int, infeed::Tensor>> arguments);
  void product(const infeed::Tensor& out, const infeed::Tensor& a, const infeed::Tensor& b,
               const infeed::Tensor& bias = {}, bool relu = false);

  /// x [rows, in] -> [rows, out]; g: the gradient of the result.
  struct Linear {
    infeed::Tensor y, g;
  };
  Linear linear(const infeed::Tensor& x, std::int64_t out, const infeed::Tensor& x_grad, bool relu = false);
  void loss(const infeed::Tensor& logits, const infeed::Tensor& g, const infeed::Tensor& labels);

  void later(std::function<void()> backward) { backward_.push_back(std::move(backward)); }
  /// Forward is listed; now what was put off, last first.
  void list_backward();

 private:
  std::vector<std::function<void()>> calls_, backward_;
  std::vector<infeed::optim::SgdRow> rows_;
};

/// The network of pictures, forward and backward.
void list_resnet(Bare& list, const infeed::Tensor& labels);

}  // namespace bench

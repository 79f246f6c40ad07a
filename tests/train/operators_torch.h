#pragma once
// One operator beside LibTorch's, forward and backward.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "train/torch_compare.h"

namespace infeed {

struct Operator {
  std::string name;
  std::vector<Shape> shapes;  ///< of the inputs, which all require a gradient
  std::function<Tensor(const std::vector<Tensor>&)> ours;
  std::function<torch::Tensor(const std::vector<torch::Tensor>&)> theirs;
  friend void PrintTo(const Operator& op, std::ostream* out) { *out << op.name; }
};

class TorchOperatorTest : public ::testing::TestWithParam<Operator> {
 protected:
  TorchOperatorTest() {
    for (const Shape& shape : GetParam().shapes) {
      ours.push_back(spread_values(shape, static_cast<std::int64_t>(ours.size())).set_requires_grad());
      theirs.push_back(to_torch(ours.back()).set_requires_grad(true));
    }
  }

  void expect_agreement() {
    const Tensor y = GetParam().ours(ours);
    const torch::Tensor expected = GetParam().theirs(theirs);
    expect_close(y, expected, "output", 1e-4);
    const Tensor grad = spread_values(y.shape(), 17);
    y.backward(grad);
    expected.backward(to_torch(grad));
    for (std::size_t i = 0; i < ours.size(); ++i)
      expect_close(ours[i].grad(), theirs[i].grad(), "gradient of input " + std::to_string(i), 1e-4);
  }

  std::vector<Tensor> ours;
  std::vector<torch::Tensor> theirs;
};

/// Places in a dimension of 3 or more.
inline const Tensor kPicks = Tensor::from_values<std::int64_t>({2, 0, 2, 1});
inline const torch::Tensor kTorchPicks = torch::tensor({2, 0, 2, 1}, torch::kInt64);

inline const auto kOperatorName = [](const auto& test) { return test.param.name; };

}  // namespace infeed

#include <fmt/format.h>

#include <ostream>

#include "infeed/train/tensor/tensor.h"
#include "train/kernels/copy.h"

namespace infeed {
namespace {

constexpr std::int64_t kEdge = 3;                    // items shown at each end of a long dimension
constexpr std::int64_t kShownWhole = 2 * kEdge + 1;  // longest dimension that is shown whole

void print_values(std::string& text, const double* values, const Shape& shape, const Strides& strides, int dim) {
  if (dim == shape.ndim()) {
    text += fmt::format("{:.6g}", *values);
    return;
  }
  text += '[';
  for (std::int64_t i = 0; i < shape[dim]; ++i) {
    if (i > 0) text += dim + 1 == shape.ndim() ? ", " : ",\n" + std::string(static_cast<std::size_t>(dim) + 1, ' ');
    if (shape[dim] > kShownWhole && i == kEdge) {
      text += "..., ";
      i = shape[dim] - kEdge;
    }
    print_values(text, values + i * strides[dim], shape, strides, dim + 1);
  }
  text += ']';
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  Tensor values = empty(shape(), DType::kFloat64);
  kernels::copy(values, *this);
  std::string text;
  print_values(text, values.data<double>(), values.shape(), values.strides(), 0);
  return fmt::format("{} {}{}", text, to_string(dtype()), shape().str());
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace infeed

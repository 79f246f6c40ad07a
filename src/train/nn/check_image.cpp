#include "train/nn/check_image.h"

#include <fmt/format.h>

#include "infeed/base/error.h"

namespace infeed::nn {

void check_image(std::string_view op, const Tensor& x) {
  if (x.ndim() != 4 || x.dtype() != DType::kFloat32)
    throw ConfigError(
        fmt::format("{}: needs float32 [N, C, H, W], the input is {}{}.", op, to_string(x.dtype()), x.shape().str()));
}

void check_parameter(std::string_view op, std::string_view name, const Tensor& t, const Shape& shape) {
  if (t.shape() != shape || t.dtype() != DType::kFloat32)
    throw ConfigError(fmt::format("{}: {} must be float32{}, it is {}{}.", op, name, shape.str(), to_string(t.dtype()),
                                  t.shape().str()));
}

void check_output(std::string_view op, const Shape& x, const Shape& y) {
  if (y[2] < 1 || y[3] < 1)
    throw ConfigError(fmt::format("{}: the window exceeds the padded input {}: nothing is left of it.", op, x.str()));
}

}  // namespace infeed::nn

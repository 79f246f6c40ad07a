#pragma once
/// What the functional forms ask of their arguments.

#include <string_view>

#include "infeed/train/nn/functional.h"

namespace infeed::nn {

/// Throws ConfigError unless x is float32 [N, C, H, W].
void check_image(std::string_view op, const Tensor& x);

/// Throws ConfigError unless t is float32 of `shape`.
void check_parameter(std::string_view op, std::string_view name, const Tensor& t, const Shape& shape);

/// Throws ConfigError unless y, made from x, has elements along height and width.
void check_output(std::string_view op, const Shape& x, const Shape& y);

}  // namespace infeed::nn

#pragma once
/// Shapes and strides of views, without tensors.

#include <optional>
#include <string_view>

#include "infeed/base/shape.h"

namespace infeed {

/// Strides with which `shape` shows the same elements in the same order, or nullopt where only a copy can.
[[nodiscard]] std::optional<Strides> view_strides(const Shape& old_shape, const Strides& old_strides,
                                                  const Shape& shape);

/// `shape` with its -1, if any, worked out. Throws ConfigError where the numbers of elements differ.
[[nodiscard]] Shape resolve_shape(std::string_view op, const Shape& old_shape, const Shape& shape);

/// The common shape of two operands. Throws ConfigError naming `op` and both.
[[nodiscard]] Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b);

/// Strides of `shape` seen as the larger `target`: 0 along repeated dimensions. The shapes must broadcast.
[[nodiscard]] Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target);

}  // namespace infeed

#pragma once
/// Shapes and strides of views, without tensors.

#include <optional>

#include "infeed/base/shape.h"

namespace infeed {

/// Strides with which `shape` shows the same elements in the same order, or nullopt where only a copy can.
[[nodiscard]] std::optional<Strides> view_strides(const Shape& old_shape, const Strides& old_strides,
                                                  const Shape& shape);

/// `shape` with its -1, if any, worked out. Throws RuntimeError where the numbers of elements differ.
[[nodiscard]] Shape resolve_shape(const Shape& old_shape, const Shape& shape);

/// The common shape of two operands. Throws RuntimeError naming both sizes and their dimension.
[[nodiscard]] Shape broadcast_shape(const Shape& a, const Shape& b);

/// True if `shape` broadcasts to `target` itself.
[[nodiscard]] bool is_expandable_to(const Shape& shape, const Shape& target) noexcept;

/// Strides of `shape` seen as the larger `target`: 0 along repeated dimensions. The shapes must broadcast.
[[nodiscard]] Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target);

}  // namespace infeed

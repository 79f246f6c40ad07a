#pragma once
/// Conversions that lose nothing.

#include <cstddef>

#include "infeed/base/dtype.h"

namespace infeed {

/// `count` elements from `in` to `out`, both packed, aligned to their items.
using WidenFn = void (*)(std::byte* out, const std::byte* in, std::size_t count);

/// The conversion; nullptr where `to` cannot hold every value of `from`, and where both are the same.
[[nodiscard]] WidenFn widen_function(DType from, DType to) noexcept;

}  // namespace infeed

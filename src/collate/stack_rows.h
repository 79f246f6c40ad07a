#pragma once
/// What the built-in collates share.

#include <vector>

#include "infeed/collate/collate.h"

namespace infeed {

/// `shape` with `size` in place of each variable dimension.
[[nodiscard]] Shape with_variable(const Shape& shape, std::int64_t size);

/// Adds `field` as [B, ...]. Throws DataError where shapes differ.
void stack_rows(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out);

}  // namespace infeed

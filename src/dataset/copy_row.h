#pragma once
/// Copies of rows that are strided; infeed/base/copy.h has the plain ones.

#include <cstddef>

#include "infeed/base/array_view.h"
#include "infeed/base/copy.h"

namespace infeed {

/// Copies any strided array to C order.
void copy_strided(std::byte* out, const ArrayView& in) noexcept;

}  // namespace infeed

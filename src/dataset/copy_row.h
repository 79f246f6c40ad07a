#pragma once
/// Copies of rows.

#include <cstddef>
#include <cstdint>

#include "infeed/base/array_view.h"

namespace infeed {

/// From here on stores pass the cache: the consumer reads the row much later, from memory. Bytes.
inline constexpr std::size_t kStreamBytes = std::size_t{1} << 20;

/// memcpy; large ones by streaming stores, fenced before the return. No overlap.
void copy_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept;

/// Copies any strided array to C order.
void copy_strided(std::byte* out, const ArrayView& in) noexcept;

}  // namespace infeed

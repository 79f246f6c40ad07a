#pragma once
/// Copies of bytes that are read much later, by somebody else.

#include <cstddef>

#include "infeed/base/export.h"

namespace infeed {

/// From here on stores pass the cache: the consumer reads the row much later, from memory. Bytes.
inline constexpr std::size_t kStreamBytes = std::size_t{1} << 20;

/// memcpy; large ones by streaming stores, fenced before the return. No overlap.
INFEED_API void copy_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept;

}  // namespace infeed

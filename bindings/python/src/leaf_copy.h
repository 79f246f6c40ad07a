#pragma once
/// Bytes of one leaf to their place in a message.

#include <cstddef>
#include <cstdint>
#include <span>

namespace infeed::python {

/// From this size on a copy is worth giving up the GIL for; the caller does that.
inline constexpr std::size_t kUnlockBytes = 256 * 1024;

/// Rows contiguous in `out`. `strides` are in bytes, of either sign; `item` is the size of an element.
void copy_strided(std::byte* out, const std::byte* in, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides, std::size_t item) noexcept;

}  // namespace infeed::python

#pragma once
/// Bytes of a collated batch: what BatchWriter writes and read_batch() checks. Rows of a fixed schema need none of it:
/// their places follow from the schema alone (layout.h).
///
///   extent: | BatchHeader 64 B | ArrayRecord[kMaxArrays], 160 B each | array 0 | array 1 | ...
///           0                  64                                    kArraysBegin, each array at a multiple of 128
///
///   BatchHeader   0  magic "IFB1"      ArrayRecord    0  name, zero-padded, 1 to 63 bytes
///                 4  version                         64  dtype (base/dtype.h)   65 ndim, 0 to 8
///                 6  num_arrays                      66  zero
///                 8  used_bytes: end of the          72  offset from the extent's start
///                    last array                      80  nbytes = product of shape x itemsize
///                16  zero                            88  zero
///                                                    96  shape[8], unused sizes are 0
///
/// Little-endian. Arrays come in the order of their records and do not overlap. Records that are not used are not
/// written: their pages stay uncommitted.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "infeed/base/dtype.h"
#include "infeed/base/shape.h"

namespace infeed {

inline constexpr std::size_t kMaxNameBytes = 63;
inline constexpr std::size_t kMaxArrays = 128;
inline constexpr std::size_t kArrayAlign = 128;
inline constexpr std::uint32_t kBatchMagic = 0x31424649;  // "IFB1"
inline constexpr std::uint16_t kBatchVersion = 1;

struct BatchHeader {
  std::uint32_t magic = kBatchMagic;
  std::uint16_t version = kBatchVersion;
  std::uint16_t num_arrays = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t zero[6] = {};
};

struct ArrayRecord {
  char name[kMaxNameBytes + 1] = {};
  std::uint8_t dtype = 0;
  std::uint8_t ndim = 0;
  std::uint16_t zero16 = 0;
  std::uint32_t zero32 = 0;
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t zero64 = 0;
  std::int64_t shape[kMaxDims] = {};
};

static_assert(sizeof(BatchHeader) == 64 && offsetof(BatchHeader, used_bytes) == 8);
static_assert(sizeof(ArrayRecord) == 160 && offsetof(ArrayRecord, offset) == 72 && offsetof(ArrayRecord, shape) == 96);

[[nodiscard]] constexpr std::size_t align_up(std::size_t value, std::size_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

inline constexpr std::size_t kArraysBegin =
    align_up(sizeof(BatchHeader) + kMaxArrays * sizeof(ArrayRecord), kArrayAlign);

/// Bytes of a C-contiguous array; nullopt where a size is negative, or where the bytes or a stride of it would pass
/// 2^62. Sizes of 0 do not hide the others: strides count them as 1.
[[nodiscard]] inline std::optional<std::size_t> checked_nbytes(DType dtype, const Shape& shape) noexcept {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  auto span = static_cast<std::int64_t>(itemsize(dtype));
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) empty = true;
    if (size != 0 && (__builtin_mul_overflow(span, size, &span) || span > kLimit)) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::size_t>(span);
}

}  // namespace infeed

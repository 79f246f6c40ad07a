// Any bytes as a batch: read_batch() must throw DataError or give arrays that lie inside.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "batch/format.h"
#include "batch/reader.h"
#include "infeed/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The input is the header's bytes; what follows them is zero.
  const std::size_t extent_bytes = infeed::kArraysBegin + 4096;
  static auto* extent = static_cast<std::byte*>(::operator new[](extent_bytes, std::align_val_t{128}));
  if (size > extent_bytes) return 0;
  std::memset(extent, 0, extent_bytes);
  if (size > 0) std::memcpy(extent, data, size);
  try {
    for (const infeed::NamedArray& named : infeed::read_batch({extent, extent_bytes})) {
      const auto* end = named.array.data + named.array.nbytes();
      if (named.array.data < extent + infeed::kArraysBegin || end > extent + extent_bytes) std::abort();
    }
  } catch (const infeed::DataError&) {
  }
  return 0;
}

#pragma once
/// Reads a collated batch (format.h), trusting nothing in it.

#include <cstddef>
#include <span>
#include <vector>

#include "infeed/batch/batch.h"

namespace infeed {

/// Arrays of the batch at the start of `extent`, which starts at a multiple of 128. Every view returned lies inside
/// `extent`, after its header, and overlaps no other, whatever the writer did: the header is copied to private memory
/// once and only that copy is checked and used. Throws DataError that says what is wrong.
[[nodiscard]] std::vector<NamedArray> read_batch(std::span<std::byte> extent);

}  // namespace infeed

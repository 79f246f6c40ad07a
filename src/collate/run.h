#pragma once
/// From gathered rows to a batch in its extent.

#include <cstddef>
#include <span>

#include "batch/rows.h"
#include "infeed/collate/collate.h"

namespace infeed {

/// Runs `collate` over the committed rows of `rows`; writes arrays and header into `extent` (batch/format.h), for
/// read_batch(). Returns the bytes used. Throws what the collate throws, and MemoryError where the extent ends; the
/// extent then holds no batch.
std::size_t collate_rows(const Collate& collate, const RowGather& rows, std::span<std::byte> extent);

}  // namespace infeed

#include "decode/row_index.h"

namespace infeed {

bool is_plausible(const RowIndex& index, std::size_t coded_begin, std::size_t file_bytes) noexcept {
  if (index.entries.size() < 2 || index.entries.size() > static_cast<std::size_t>(index.num_stretches) + 1)
    return false;
  if (index.entries.front() != EntryPoint{static_cast<std::uint32_t>(coded_begin), 0, {}}) return false;
  EntryPoint before;
  for (const EntryPoint& entry : index.entries) {
    const bool later = entry.offset > before.offset || (entry.offset == before.offset && entry.bit > before.bit);
    if (!later || entry.bit > 7 || entry.offset > file_bytes) return false;
    before = entry;
  }
  return true;
}

}  // namespace infeed

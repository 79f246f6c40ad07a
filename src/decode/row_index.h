#pragma once
/// Where the rows of a JPEG begin in its file, so that what stands above and beside a window need not be decoded. See
/// docs/decode.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace infeed {

/// The state of the entropy decoder between two MCUs.
struct EntryPoint {
  std::uint32_t offset = 0;          ///< in the file, of the byte that holds the next bit
  std::uint8_t bit = 0;              ///< of that byte: 0, the most significant, to 7
  std::array<std::int16_t, 3> dc{};  ///< the components' predictors
  bool operator==(const EntryPoint&) const = default;
};

/// The entry points of a picture's first stretches: its rows of MCUs, cut into up to 16 pieces. Of all: num_stretches + 1, since the scan's end is one too. A decode starts at an entry point only where it
/// passes a later one, which must then agree.
struct RowIndex {
  bool none = false;      ///< the file has none to know: it is no baseline JPEG, or one with restart markers
  int num_stretches = 0;  ///< of the whole picture; 0: not known
  std::vector<EntryPoint> entries;

  [[nodiscard]] bool is_complete() const noexcept {
    return num_stretches > 0 && entries.size() == static_cast<std::size_t>(num_stretches) + 1;
  }
};

/// Whether a file whose coded bytes are [coded_begin, file_bytes) can have these entry points.
[[nodiscard]] bool is_plausible(const RowIndex& index, std::size_t coded_begin, std::size_t file_bytes) noexcept;

}  // namespace infeed

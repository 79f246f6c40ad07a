#pragma once
/// The entropy-coded bytes of one scan without their stuffing, cut at the restart markers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace infeed {

/// Zeros behind the last byte: an MCU of ten blocks of the longest codes takes less, and is decoded without a test.
inline constexpr std::size_t kScanPadding = 4096;

/// | interval `first` | interval `first` + 1 | ... | kScanPadding zeros |
class ScanBytes {
 public:
  /// Takes the intervals [first, end) of what begins at `coded` with interval 0; a scan ends at the first marker that is
  /// no restart, or with the input. Those before are searched for their markers only, those behind are not looked at.
  /// False where one is missing, restart markers do not count 0 to 7, or fill bytes stand inside: that is libjpeg's.
  [[nodiscard]] bool read(std::span<const std::byte> coded, std::size_t first, std::size_t end);

  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_.data(); }
  /// Offsets of the first byte, and of the one behind the last, of an interval in [first, end).
  [[nodiscard]] std::size_t begin(std::size_t interval) const noexcept {
    return interval == first_ ? 0 : ends_[interval - first_ - 1];
  }
  [[nodiscard]] std::size_t end(std::size_t interval) const noexcept { return ends_[interval - first_]; }

  /// Where byte `at` of the scan's first interval stood in `coded`.
  [[nodiscard]] std::size_t source_of(std::size_t at) const noexcept;

 private:
  std::vector<std::uint8_t> bytes_;  // kept for its memory; never shrinks, its size is no length
  std::size_t first_ = 0;
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> stuffed_;  // before these bytes a zero stood
};

}  // namespace infeed

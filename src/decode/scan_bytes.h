#pragma once
/// The entropy-coded bytes of one scan without their stuffing, cut at the restart markers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace infeed {

/// Zeros behind the last byte: an MCU of ten blocks of the longest codes takes less, and is decoded without a test.
inline constexpr std::size_t kScanPadding = 4096;

/// | interval 0 | interval 1 | ... | kScanPadding zeros |
class ScanBytes {
 public:
  /// `coded` begins behind the scan's header; ends at the first marker that is no restart, or with the input. False
  /// where restart markers do not count 0 to 7, or fill bytes stand inside: those are libjpeg's.
  [[nodiscard]] bool read(std::span<const std::byte> coded);

  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t num_intervals() const noexcept { return ends_.size(); }
  /// Offsets of the first byte, and of the one behind the last.
  [[nodiscard]] std::size_t begin(std::size_t interval) const noexcept {
    return interval == 0 ? 0 : ends_[interval - 1];
  }
  [[nodiscard]] std::size_t end(std::size_t interval) const noexcept { return ends_[interval]; }

 private:
  std::vector<std::uint8_t> bytes_;  // kept for its memory; never shrinks, its size is no length
  std::vector<std::size_t> ends_;
};

}  // namespace infeed

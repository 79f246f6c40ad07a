#pragma once
/// What we read of a JPEG's header ourselves; the rest is libjpeg's.

#include <cstddef>
#include <span>

namespace infeed {

struct JpegHeader {
  std::span<const std::byte> exif;  ///< TIFF block of the first Exif APP1 segment; empty if there is none
  int frame_marker = 0;             ///< 0xC0..0xCF, of the first frame header; 0 if there is none
};

/// Walks the segments up to the first scan.
[[nodiscard]] JpegHeader scan_jpeg_header(std::span<const std::byte> jpeg) noexcept;

/// Frames without DCT. Some libjpegs read them, none in windows.
[[nodiscard]] constexpr bool is_lossless_frame(int marker) noexcept {
  return marker == 0xC3 || marker == 0xC7 || marker == 0xCB || marker == 0xCF;
}

}  // namespace infeed

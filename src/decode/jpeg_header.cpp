#include "decode/jpeg_header.h"

#include "decode/byte_reader.h"

// JPEG header: | FF D8 | segments ... | FF DA ...
// segment:     | FF (one or more) | marker | u16 length, itself included | payload |

namespace infeed {
namespace {

constexpr std::uint32_t kStartOfScan = 0xDA;
constexpr std::uint32_t kEndOfImage = 0xD9;
constexpr std::uint32_t kApp1 = 0xE1;
constexpr std::string_view kExif("Exif\0\0", 6);

// C4, C8 and CC are tables and a reserved marker.
constexpr bool is_frame(std::uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

}  // namespace

JpegHeader scan_jpeg_header(std::span<const std::byte> jpeg) noexcept {
  JpegHeader header;
  const ByteReader reader(jpeg, true);
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    const std::uint32_t marker = reader.u16(at) & 0xFF;
    if (jpeg[at] != std::byte{0xFF} || marker == 0xFF || marker == 0) {
      ++at;  // stray and fill bytes between segments: libjpeg steps over them, and so do we
      continue;
    }
    const std::size_t length = reader.u16(at + 2);
    if (marker == kStartOfScan || marker == kEndOfImage || length < 2 || length > jpeg.size() - at - 2) break;
    const std::span<const std::byte> payload = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && header.exif.empty() && starts_with(payload, kExif)) {
      header.exif = payload.subspan(kExif.size());
    }
    if (is_frame(marker) && header.frame_marker == 0) header.frame_marker = static_cast<int>(marker);
    at += 2 + length;
  }
  return header;
}

}  // namespace infeed

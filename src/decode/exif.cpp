#include "decode/exif.h"

#include <cstdint>

#include "decode/byte_reader.h"

// TIFF block:  | "II" 2A 00 or "MM" 00 2A | u32 offset of IFD0 | ... |
// IFD:         | u16 n | n entries of 12 bytes | u32 next IFD |
// entry:       | u16 tag | u16 type | u32 count | 4 bytes: the value, at their front where it is shorter |
//
// PNG:         | 8 bytes signature | chunks |      chunk: | u32 length | 4 bytes type | payload | u32 CRC |

namespace infeed {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kTypeShort = 3;
constexpr std::uint16_t kTypeLong = 4;
constexpr std::size_t kEntryBytes = 12;

}  // namespace

int tiff_orientation(Bytes tiff) noexcept {
  const bool big_endian = starts_with(tiff, "MM");
  const ByteReader reader(tiff, big_endian);
  if ((!big_endian && !starts_with(tiff, "II")) || reader.u16(2) != 42) return 1;
  const std::size_t ifd = reader.u32(4);
  const std::size_t count = reader.u16(ifd);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry = ifd + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (reader.u16(entry) != kOrientationTag) continue;
    const std::uint32_t type = reader.u16(entry + 2);
    if ((type != kTypeShort && type != kTypeLong) || reader.u32(entry + 4) < 1) return 1;
    const std::uint32_t value = type == kTypeShort ? reader.u16(entry + 8) : reader.u32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Bytes find_png_exif(Bytes png) noexcept {
  constexpr std::size_t kFrameBytes = 12;
  const ByteReader reader(png, true);
  std::size_t at = 8;
  while (at + kFrameBytes <= png.size()) {
    const std::size_t length = reader.u32(at);
    if (length > png.size() - at - kFrameBytes) break;
    if (starts_with(png.subspan(at + 4), "eXIf")) return png.subspan(at + 8, length);
    at += kFrameBytes + length;
  }
  return {};
}

}  // namespace infeed

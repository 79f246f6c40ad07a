#include "decode/exif.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

// TIFF block:  | "II" 2A 00 or "MM" 00 2A | u32 offset of IFD0 | ... |
// IFD:         | u16 n | n entries of 12 bytes | u32 next IFD |
// entry:       | u16 tag | u16 type | u32 count | 4 bytes: the value, at their front where it is shorter |
//
// JPEG header: | FF D8 | segments ... | FF DA ...
// segment:     | FF (one or more) | marker | u16 length, itself included | payload |
//
// PNG:         | 8 bytes signature | chunks |      chunk: | u32 length | 4 bytes type | payload | u32 CRC |

namespace infeed {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kTypeShort = 3;
constexpr std::uint16_t kTypeLong = 4;
constexpr std::size_t kEntryBytes = 12;

// Reads past the end give 0, which no caller takes for a valid value.
class Reader {
 public:
  Reader(Bytes bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  [[nodiscard]] std::uint32_t u16(std::size_t at) const noexcept { return number(at, 2); }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const noexcept { return number(at, 4); }

 private:
  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t size) const noexcept {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = big_endian_ ? i : size - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + place]);
    }
    return value;
  }

  Bytes bytes_;
  bool big_endian_;
};

bool starts_with(Bytes bytes, std::string_view text) noexcept {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char a, std::byte b) { return std::byte(a) == b; });
}

}  // namespace

int tiff_orientation(Bytes tiff) noexcept {
  const bool big_endian = starts_with(tiff, "MM");
  const Reader reader(tiff, big_endian);
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

Bytes find_jpeg_exif(Bytes jpeg) noexcept {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr std::uint32_t kStartOfScan = 0xDA;
  constexpr std::uint32_t kEndOfImage = 0xD9;
  constexpr std::uint32_t kApp1 = 0xE1;
  const Reader reader(jpeg, true);
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    if (jpeg[at] != std::byte{0xFF}) {  // stray bytes between segments: libjpeg steps over them, and so do we
      ++at;
      continue;
    }
    const std::uint32_t marker = reader.u16(at) & 0xFF;
    if (marker == 0xFF || marker == 0) {
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    const std::size_t length = reader.u16(at + 2);
    if (length < 2 || length > jpeg.size() - at - 2) break;
    const Bytes payload = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && starts_with(payload, kExif)) return payload.subspan(kExif.size());
    at += 2 + length;
  }
  return {};
}

Bytes find_png_exif(Bytes png) noexcept {
  constexpr std::size_t kFrameBytes = 12;
  const Reader reader(png, true);
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

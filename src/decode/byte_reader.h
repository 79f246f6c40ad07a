#pragma once
/// Numbers from untrusted bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace infeed {

/// Reads past the end give 0, which no caller takes for a valid value.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

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

  std::span<const std::byte> bytes_;
  bool big_endian_;
};

[[nodiscard]] inline bool starts_with(std::span<const std::byte> bytes, std::string_view text) noexcept {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char a, std::byte b) { return std::byte(a) == b; });
}

}  // namespace infeed

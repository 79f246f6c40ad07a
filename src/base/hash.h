#pragma once
/// A fast hash of bytes, for checksums and keys of files of our own: the same on every machine. Not for what an
/// adversary chooses.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace infeed {

[[nodiscard]] inline std::uint64_t hash64(std::span<const std::byte> bytes) noexcept {
  __extension__ using Product = unsigned __int128;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Product product = Product{a} * b;
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  };
  constexpr std::uint64_t kAdd = 0x9E3779B97F4A7C15, kMultiply = 0xD6E8FEB86659FD93;
  const auto word = [](const std::byte* from, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, size);
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
  };
  std::uint64_t hash = bytes.size() * kAdd;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) hash = fold(hash ^ kAdd ^ word(bytes.data() + at, 8), kMultiply);
  if (at < bytes.size()) hash = fold(hash ^ kAdd ^ word(bytes.data() + at, bytes.size() - at), kMultiply);
  return fold(hash ^ kMultiply, kAdd);
}

[[nodiscard]] inline std::uint64_t hash64(std::string_view text) noexcept {
  return hash64(std::as_bytes(std::span(text)));
}

}  // namespace infeed

#include "decode/scan_bytes.h"

#include <algorithm>
#include <cstring>

namespace infeed {
namespace {

constexpr std::uint8_t kMarker = 0xFF;
constexpr std::uint8_t kFirstRestart = 0xD0, kLastRestart = 0xD7;

// The next FF; `last` where there is none.
const std::uint8_t* find_marker(const std::uint8_t* in, const std::uint8_t* last) noexcept {
  const void* found = std::memchr(in, kMarker, static_cast<std::size_t>(last - in));
  return found == nullptr ? last : static_cast<const std::uint8_t*>(found);
}

// Behind the marker that ends `interval`; null where another comes first.
const std::uint8_t* skip_interval(const std::uint8_t* in, const std::uint8_t* last, std::size_t interval) noexcept {
  for (;;) {
    const std::uint8_t* marker = find_marker(in, last);
    if (last - marker < 2) return nullptr;
    in = marker + 2;
    if (marker[1] == kFirstRestart + interval % 8) return in;
    if (marker[1] != 0) return nullptr;
  }
}

}  // namespace

bool ScanBytes::read(std::span<const std::byte> coded, std::size_t first, std::size_t end) {
  first_ = first;
  ends_.clear();
  stuffed_.clear();
  const auto* in = reinterpret_cast<const std::uint8_t*>(coded.data());
  const std::uint8_t* const last = in + coded.size();
  for (std::size_t interval = 0; interval < first; ++interval) {
    in = skip_interval(in, last, interval);
    if (in == nullptr) return false;
  }
  const std::size_t most = static_cast<std::size_t>(last - in) + kScanPadding;
  if (bytes_.size() < most) bytes_.resize(most);
  std::uint8_t* out = bytes_.data();
  while (first + ends_.size() < end) {
    const std::uint8_t* marker = find_marker(in, last);
    std::memcpy(out, in, static_cast<std::size_t>(marker - in));
    out += marker - in;
    const auto size = static_cast<std::size_t>(out - bytes_.data());
    if (last - marker < 2) {
      ends_.push_back(size);
      break;
    }
    in = marker + 2;
    if (marker[1] == 0) {
      *out++ = kMarker;
      stuffed_.push_back(size + 1);
      continue;
    }
    if (marker[1] == kMarker) return false;
    const bool restart = marker[1] >= kFirstRestart && marker[1] <= kLastRestart;
    if (restart && marker[1] != kFirstRestart + (first + ends_.size()) % 8) return false;
    ends_.push_back(size);
    if (!restart) break;
  }
  std::memset(out, 0, kScanPadding);
  return first + ends_.size() == end;
}

std::size_t ScanBytes::source_of(std::size_t at) const noexcept {
  const auto before = std::upper_bound(stuffed_.begin(), stuffed_.end(), at) - stuffed_.begin();
  return at + static_cast<std::size_t>(before);
}

}  // namespace infeed

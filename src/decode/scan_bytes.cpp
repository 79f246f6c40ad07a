#include "decode/scan_bytes.h"

#include <cstring>

namespace infeed {
namespace {

constexpr std::uint8_t kMarker = 0xFF;
constexpr std::uint8_t kFirstRestart = 0xD0, kLastRestart = 0xD7;

}  // namespace

bool ScanBytes::read(std::span<const std::byte> coded) {
  if (bytes_.size() < coded.size() + kScanPadding) bytes_.resize(coded.size() + kScanPadding);
  ends_.clear();
  const auto* in = reinterpret_cast<const std::uint8_t*>(coded.data());
  const std::uint8_t* const last = in + coded.size();
  std::uint8_t* out = bytes_.data();
  for (;;) {
    const void* found = std::memchr(in, kMarker, static_cast<std::size_t>(last - in));
    const auto* marker = found == nullptr ? last : static_cast<const std::uint8_t*>(found);
    std::memcpy(out, in, static_cast<std::size_t>(marker - in));
    out += marker - in;
    if (last - marker < 2) break;
    in = marker + 2;
    if (marker[1] == 0) {
      *out++ = kMarker;
      continue;
    }
    if (marker[1] == kMarker) return false;
    if (marker[1] < kFirstRestart || marker[1] > kLastRestart) break;
    if (marker[1] != kFirstRestart + ends_.size() % 8) return false;
    ends_.push_back(static_cast<std::size_t>(out - bytes_.data()));
  }
  ends_.push_back(static_cast<std::size_t>(out - bytes_.data()));
  std::memset(out, 0, kScanPadding);
  return true;
}

}  // namespace infeed

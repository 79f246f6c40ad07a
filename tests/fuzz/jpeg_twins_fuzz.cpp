// Any bytes as a JPEG, decoded with our entropy decoder and by libjpeg alone: the same window, or the same error. Ours
// reads less below a window, and nothing before the restart marker it starts at: there it may not see damage. The first
// 8 bytes choose window and leniency; the rest is the file.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "decode/jpeg.h"
#include "infeed/base/error.h"

namespace {

constexpr std::size_t kChoiceBytes = 8;
constexpr std::int64_t kMaxPixels = 1 << 18;

struct Outcome {
  std::string pixels;
  std::string error;
  bool is_whole = false;
};

int within(std::uint8_t choice, int bound) { return static_cast<int>(std::int64_t{choice} * bound / 256); }

Outcome decode(infeed::JpegSource& source, std::span<const std::uint8_t> choice, std::span<const std::byte> file) {
  Outcome outcome;
  try {
    const infeed::DecodeOptions options{.allow_truncated = (choice[0] & 1) != 0, .max_pixels = kMaxPixels};
    const infeed::StoredInfo info = source.open(file, options);
    infeed::Window window{0, 0, info.width, info.height};
    if ((choice[0] & 2) != 0) {
      window = {within(choice[1], info.width), within(choice[2], info.height), 1, 1};
      window.width += within(choice[3], info.width - window.x);
      window.height += within(choice[4], info.height - window.y);
    }
    outcome.is_whole = window.width == info.width && window.height == info.height;
    infeed::PixelBuffer buffer;
    const infeed::PixelWindow got = source.decode(window, 1, 1, buffer);
    for (int y = 0; y < got.height; ++y) {
      for (int x = 0; x < got.width; ++x)
        outcome.pixels.append(reinterpret_cast<const char*>(got.pixels + y * got.stride + std::ptrdiff_t{4} * x), 3);
    }
  } catch (const infeed::DecodeError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

bool has_restarts(std::span<const std::byte> file) {
  constexpr std::byte kInterval[] = {std::byte{0xFF}, std::byte{0xDD}};
  return memmem(file.data(), file.size(), kInterval, sizeof kInterval) != nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoiceBytes) return 0;
  static infeed::JpegSource ours, libjpegs(true);
  const std::span<const std::uint8_t> choice(data, kChoiceBytes);
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size)).subspan(kChoiceBytes);
  const Outcome a = decode(ours, choice, file), b = decode(libjpegs, choice, file);
  if (a.pixels == b.pixels && a.error == b.error) return 0;
  if (a.error.empty() && !b.error.empty() && (has_restarts(file) || !a.is_whole)) return 0;
  std::fprintf(stderr, "ours: %zu bytes of pixels, \"%s\"\nlibjpeg: %zu bytes of pixels, \"%s\"\n", a.pixels.size(),
               a.error.c_str(), b.pixels.size(), b.error.c_str());
  std::abort();
}

#include "decode/cmyk.h"

#include <algorithm>

namespace infeed {
namespace {

// a * b / 255, rounded
int scaled_by(int a, int b) noexcept {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

}  // namespace

void cmyk_to_rgbx(std::uint8_t* pixels, int count) noexcept {
  for (int i = 0; i < count; ++i, pixels += 4) {
    const int white = pixels[3];  // 255 - black
    for (int c = 0; c < 3; ++c) {
      const int ink = 255 - pixels[c];
      // intentional: the ink is scaled and taken off, not the paper scaled; the rounding is Pillow's
      pixels[c] = static_cast<std::uint8_t>(std::max(0, white - scaled_by(ink, white)));
    }
  }
}

}  // namespace infeed

#pragma once
/// Printing colours to screen colours, as Pillow converts them.

#include <cstdint>

namespace infeed {

/// Turns `count` pixels from C, M, Y, K as JPEG files hold them (Adobe's way: inverted, 255 is no ink) into R, G, B,
/// unused, in place.
void cmyk_to_rgbx(std::uint8_t* pixels, int count) noexcept;

}  // namespace infeed

#pragma once
/// A window of a picture as its file codes it: a plane of samples for each component.

#include <array>
#include <cstddef>
#include <cstdint>

namespace infeed {

/// Samples of one component. 64 bytes are readable behind the end of each row.
struct SamplePlane {
  const std::uint8_t* samples = nullptr;  ///< sample (x0, y0) of the component
  std::ptrdiff_t stride = 0;              ///< bytes
  int x0 = 0, y0 = 0;
  int width = 0, height = 0;  ///< samples held
};

/// Y, Cb, Cr (JFIF: ITU-R BT.601, full range) or gray. Chroma has a sample for spread_x x spread_y pixels, the last of
/// an odd side spans one; a pixel's chroma is 3/4 of its own sample and 1/4 of the nearest other, in each direction.
struct PlaneWindow {
  int num_planes = 0;  ///< 1: gray; 3
  std::array<SamplePlane, 3> planes;
  int spread_x = 1, spread_y = 1;  ///< 1 or 2
  int width = 0, height = 0;       ///< pixels of the whole picture
};

}  // namespace infeed

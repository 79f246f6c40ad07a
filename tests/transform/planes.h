#pragma once
/// Pictures as planes, and what resizing them should give.

#include <array>
#include <vector>

#include "transform/picture.h"
#include "transform/reference.h"

namespace infeed::testing {

/// Owns the planes of a window; nothing outside it exists, so that a kernel which reads there is caught.
class HeldPlanes {
 public:
  /// The samples of a picture of width x height that `window` needs, by pixel()'s formula.
  HeldPlanes(int width, int height, const Window& window, int spread_x, int spread_y, int seed, int num_planes = 3) {
    planes.num_planes = num_planes;
    planes.spread_x = spread_x;
    planes.spread_y = spread_y;
    planes.width = width;
    planes.height = height;
    for (int p = 0; p < num_planes; ++p) {
      const Span x = p == 0 ? Span{window.x, window.width} : needed(window.x, window.width, spread_x, width);
      const Span y = p == 0 ? Span{window.y, window.height} : needed(window.y, window.height, spread_y, height);
      fill(planes.planes[static_cast<std::size_t>(p)], bytes_[static_cast<std::size_t>(p)], x, y, p, seed);
    }
  }

  PlaneWindow planes;

 private:
  struct Span {
    int begin, size;
  };

  static Span needed(int begin, int size, int spread, int all) {
    if (spread == 1) return {begin, size};
    const int first = std::max(0, begin / 2 - 1), last = std::min((all + 1) / 2 - 1, (begin + size - 1) / 2 + 1);
    return {first, last - first + 1};
  }

  static void fill(SamplePlane& plane, std::vector<std::uint8_t>& bytes, Span x, Span y, int place, int seed) {
    const auto stride = static_cast<std::size_t>(x.size) + 64;
    bytes.assign(stride * static_cast<std::size_t>(y.size), 0x5A);
    for (int j = 0; j < y.size; ++j)
      for (int i = 0; i < x.size; ++i)
        bytes[static_cast<std::size_t>(j) * stride + static_cast<std::size_t>(i)] =
            pixel(x.begin + i, y.begin + j, place, seed);
    plane = {bytes.data(), static_cast<std::ptrdiff_t>(stride), x.begin, y.begin, x.size, y.size};
  }

  std::array<std::vector<std::uint8_t>, 3> bytes_;
};

/// Sample of a whole plane spread to pixel (x, y), in exact arithmetic.
class SpreadSample {
 public:
  SpreadSample(const PlaneWindow& whole, int seed) : whole_(whole), seed_(seed) {}

  [[nodiscard]] double at(int x, int y, int place) const {
    const Pair across = place == 0 ? Pair{x, x} : pair(x, whole_.spread_x, whole_.width);
    const Pair down = place == 0 ? Pair{y, y} : pair(y, whole_.spread_y, whole_.height);
    const auto sample = [&](int i, int j) { return static_cast<double>(pixel(i, j, place, seed_)); };
    const auto row = [&](int j) { return 0.75 * sample(across.own, j) + 0.25 * sample(across.next, j); };
    return 0.75 * row(down.own) + 0.25 * row(down.next);
  }

 private:
  struct Pair {
    int own, next;
  };
  static Pair pair(int at, int spread, int all) {
    if (spread == 1) return {at, at};
    return {at / 2, std::clamp(at % 2 == 0 ? at / 2 - 1 : at / 2 + 1, 0, (all + 1) / 2 - 1)};
  }

  PlaneWindow whole_;
  int seed_;
};

}  // namespace infeed::testing

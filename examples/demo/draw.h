#pragma once
/// Draws one picture of the demo's data set: a texture that names its class, under everything that must not.

#include <array>
#include <cstdint>
#include <vector>

namespace demo {

/// Classes, in the order of their folders.
enum class Texture : std::uint8_t {
  kBands,      ///< horizontal stripes
  kBricks,     ///< joints of a wall
  kChecks,     ///< a chessboard
  kCrosses,    ///< plus signs, turned
  kDiagonals,  ///< stripes at 45 degrees, either way: a flip keeps the class
  kDots,       ///< discs
  kRings,      ///< circles
  kStripes,    ///< vertical stripes
  kTriangles,  ///< equilateral, turned
  kZigzags,    ///< horizontal stripes with teeth
};
inline constexpr std::array<const char*, 10> kTextureNames = {"bands", "bricks", "checks",  "crosses",   "diagonals",
                                                              "dots",  "rings",  "stripes", "triangles", "zigzags"};
inline constexpr int kNumTextures = static_cast<int>(kTextureNames.size());

/// SplitMix64: the same numbers everywhere for the same seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// In [low, high).
  float uniform(float low, float high) noexcept {
    return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24F);
  }
  /// In [low, high].
  int integer(int low, int high) noexcept {
    return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(float p) noexcept { return uniform(0, 1) < p; }

 private:
  std::uint64_t state_;
};

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< [height, width, 3]
  std::vector<std::int8_t>
      grain;  ///< [height, width], film grain to be added in the strength that gives the file its size
};

/// About 500 x 375 pixels, one in five upright. Colours, brightness, scale, place, light and clutter are drawn from one
/// distribution for all classes; `random` decides them.
[[nodiscard]] Picture draw_picture(Texture texture, Random random);

}  // namespace demo

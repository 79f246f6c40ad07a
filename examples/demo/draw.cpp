#include "draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace demo {
namespace {

using Colour = std::array<float, 3>;

constexpr float kPi = std::numbers::pi_v<float>;

float radians(float degrees) { return degrees * kPi / 180.0F; }
float fraction(float x) { return x - std::floor(x); }
float from_middle(float x) { return std::abs(fraction(x) - 0.5F); }  // 0 in the middle of a period, 0.5 at its ends

// One motif of a texture that is made of motifs: place and turn within its cell.
struct Motif {
  float x = 0, y = 0, cos = 1, sin = 0, size = 1;
};

constexpr int kMotifGrid = 32;  // cells per side, then they repeat; a picture shows fewer

// Where pattern coordinates (u, v), in periods, lie in the picture, and what is drawn there.
struct Scene {
  Texture texture{};
  float period = 0;  ///< pixels
  float cos = 1, sin = 0, u0 = 0, v0 = 0;
  float duty = 0.5F;                  ///< share of a period that is foreground
  std::vector<float> bend_u, bend_v;  ///< per row, per column: nothing is quite straight
  std::vector<Motif> motifs;
};

bool has_motifs(Texture texture) {
  return texture == Texture::kDots || texture == Texture::kRings || texture == Texture::kCrosses ||
         texture == Texture::kTriangles;
}

float turn_of(Texture texture, Random& random) {
  const float wobble = random.uniform(-10, 10);
  if (texture == Texture::kDiagonals) return radians(wobble + (random.chance(0.5F) ? 45.0F : -45.0F));
  return radians(wobble);
}

std::vector<float> bend(int length, float period, Random& random) {
  const float strength = random.uniform(0.02F, 0.12F);
  const float rate = 2 * kPi / (period * random.uniform(4, 9));
  const float phase = random.uniform(0, 2 * kPi);
  std::vector<float> values(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i) {
    values[static_cast<std::size_t>(i)] = strength * std::sin(rate * static_cast<float>(i) + phase);
  }
  return values;
}

Scene make_scene(Texture texture, int width, int height, Random& random) {
  Scene scene;
  scene.texture = texture;
  scene.period = has_motifs(texture) ? random.uniform(58, 96) : random.uniform(30, 54);
  if (texture == Texture::kBricks) scene.period *= 1.25F;
  const float turn = turn_of(texture, random);
  scene.cos = std::cos(turn) / scene.period;
  scene.sin = std::sin(turn) / scene.period;
  scene.u0 = random.uniform(0, 8);
  scene.v0 = random.uniform(0, 8);
  scene.duty = random.uniform(0.4F, 0.6F);
  scene.bend_u = bend(height, scene.period, random);
  scene.bend_v = bend(width, scene.period, random);
  if (!has_motifs(texture)) return scene;
  scene.motifs.resize(kMotifGrid * kMotifGrid);
  for (Motif& motif : scene.motifs) {
    const float angle = random.uniform(0, 2 * kPi);
    motif = {random.uniform(-0.1F, 0.1F), random.uniform(-0.1F, 0.1F), std::cos(angle), std::sin(angle),
             random.uniform(0.85F, 1.1F)};
  }
  return scene;
}

// Signed distance to the motif's edge in periods, negative inside.
float motif_distance(const Scene& scene, float u, float v) {
  const auto cell = [](float x) {
    return static_cast<std::size_t>(static_cast<int>(std::floor(x)) & (kMotifGrid - 1));
  };
  const Motif& motif = scene.motifs[cell(v) * kMotifGrid + cell(u)];
  const float dx = (fraction(u) - 0.5F - motif.x) / motif.size;
  const float dy = (fraction(v) - 0.5F - motif.y) / motif.size;
  if (scene.texture == Texture::kDots) return std::sqrt(dx * dx + dy * dy) - 0.28F;
  if (scene.texture == Texture::kRings) return std::abs(std::sqrt(dx * dx + dy * dy) - 0.27F) - 0.085F;
  const float x = motif.cos * dx - motif.sin * dy;
  const float y = motif.sin * dx + motif.cos * dy;
  if (scene.texture == Texture::kCrosses) {
    const float bar = std::max(std::abs(x) - 0.36F, std::abs(y) - 0.1F);
    return std::min(bar, std::max(std::abs(y) - 0.36F, std::abs(x) - 0.1F));
  }
  return std::max(std::abs(x) * 0.866F - y * 0.5F, y) - 0.2F;  // triangle
}

float brick_distance(float u, float v) {
  const float row = std::floor(v);
  const float joint = 0.5F - from_middle(u * 0.5F + 0.5F * row);  // joints shift by half a brick per row
  return std::min(joint * 2.0F, 0.5F - from_middle(v)) - 0.12F;
}

float check_distance(float u, float v) {
  const float x = from_middle(u * 0.5F) - 0.25F, y = from_middle(v * 0.5F) - 0.25F;
  const float nearest = 2 * std::min(std::abs(x), std::abs(y));
  return (x < 0) == (y < 0) ? -nearest : nearest;
}

float distance(const Scene& scene, float u, float v) {
  switch (scene.texture) {
    case Texture::kBands: return from_middle(v) - scene.duty / 2;
    case Texture::kStripes:
    case Texture::kDiagonals: return from_middle(u) - scene.duty / 2;
    case Texture::kZigzags: return from_middle(v + 1.4F * from_middle(u * 0.45F)) - scene.duty / 2;
    case Texture::kBricks: return brick_distance(u, v);
    case Texture::kChecks: return check_distance(u, v);
    default: return motif_distance(scene, u, v);
  }
}

// A colour of the given brightness; its hue is free.
Colour random_colour(float brightness, Random& random) {
  Colour colour = {random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1)};
  const float mean = 0.299F * colour[0] + 0.587F * colour[1] + 0.114F * colour[2];
  const float strength = random.uniform(10, 55);
  for (float& channel : colour) channel = brightness + strength * (channel - mean);
  return colour;
}

// Paint of one of the two layers: it runs from one colour to another across the picture.
struct Paint {
  Colour from, to;
  float at(std::size_t channel, float t) const { return from[channel] + (to[channel] - from[channel]) * t; }
};

struct Look {
  Paint back, front;
  float along_x = 0, along_y = 0;             ///< direction of the colours' run
  float light = 1, light_x = 0, light_y = 0;  ///< brightness and its slope across the picture
};

Look make_look(Random& random) {
  const float dark = random.uniform(35, 110);
  const float light = dark + random.uniform(60, 110);
  const bool front_is_light = random.chance(0.5F);  // brightness says nothing about the class
  const auto paint = [&](float brightness) {
    return Paint{random_colour(brightness - 10, random), random_colour(brightness + 10, random)};
  };
  Look look{.back = paint(front_is_light ? dark : light), .front = paint(front_is_light ? light : dark)};
  look.along_x = random.uniform(-0.5F, 0.5F);
  look.along_y = random.uniform(-0.5F, 0.5F);
  look.light = random.uniform(0.85F, 1.1F);
  look.light_x = random.uniform(-0.35F, 0.35F);
  look.light_y = random.uniform(-0.35F, 0.35F);
  return look;
}

std::uint8_t to_byte(float value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

void paint_scene(const Scene& scene, const Look& look, Picture& picture) {
  const float sharpness = scene.period / 2.5F;  // edges are 2.5 pixels wide, as a lens makes them
  std::uint8_t* out = picture.rgb.data();
  for (int row = 0; row < picture.height; ++row) {
    const auto y = static_cast<float>(row);
    const float ry = y / static_cast<float>(picture.height) - 0.5F;
    for (int column = 0; column < picture.width; ++column, out += 3) {
      const auto x = static_cast<float>(column);
      const float rx = x / static_cast<float>(picture.width) - 0.5F;
      const float u = scene.cos * x - scene.sin * y + scene.u0 + scene.bend_u[static_cast<std::size_t>(row)];
      const float v = scene.sin * x + scene.cos * y + scene.v0 + scene.bend_v[static_cast<std::size_t>(column)];
      const float front = std::clamp(0.5F - distance(scene, u, v) * sharpness, 0.0F, 1.0F);
      const float t = 0.5F + look.along_x * rx + look.along_y * ry;
      const float light = look.light + look.light_x * rx + look.light_y * ry;
      for (std::size_t c = 0; c < 3; ++c) {
        const float back = look.back.at(c, t);
        out[c] = to_byte(light * (back + (look.front.at(c, t) - back) * front));
      }
    }
  }
}

// An ellipse of any colour lies over the texture, a little transparent.
void paint_clutter(Picture& picture, Random& random) {
  const float rx = random.uniform(12, 55), ry = random.uniform(12, 55);
  const float cx = random.uniform(0, static_cast<float>(picture.width));
  const float cy = random.uniform(0, static_cast<float>(picture.height));
  const float opacity = random.uniform(0.5F, 0.95F);
  const Colour colour = random_colour(random.uniform(30, 220), random);
  const int top = std::max(0, static_cast<int>(cy - ry)),
            bottom = std::min(picture.height, static_cast<int>(cy + ry) + 1);
  const int left = std::max(0, static_cast<int>(cx - rx)),
            right = std::min(picture.width, static_cast<int>(cx + rx) + 1);
  for (int row = top; row < bottom; ++row) {
    for (int column = left; column < right; ++column) {
      const float dx = (static_cast<float>(column) - cx) / rx, dy = (static_cast<float>(row) - cy) / ry;
      const float cover = opacity * std::clamp((1 - dx * dx - dy * dy) * 8, 0.0F, 1.0F);
      const std::ptrdiff_t at = (std::ptrdiff_t{row} * picture.width + column) * 3;
      std::uint8_t* pixel = picture.rgb.data() + at;
      for (std::size_t c = 0; c < 3; ++c) {
        const auto below = static_cast<float>(pixel[c]);
        pixel[c] = to_byte(below + (colour[c] - below) * cover);
      }
    }
  }
}

// Two bytes' sum is a triangle distribution, near enough to film grain: mean 0, deviation 52.
void fill_grain(std::vector<std::int8_t>& grain, Random& random) {
  for (std::size_t i = 0; i < grain.size();) {
    std::uint64_t bits = random.bits();
    for (int k = 0; k < 4 && i < grain.size(); ++k, ++i, bits >>= 16) {
      const int sum = static_cast<int>(bits & 0xff) + static_cast<int>((bits >> 8) & 0xff);
      grain[i] = static_cast<std::int8_t>((sum - 255) / 2);
    }
  }
}

}  // namespace

Picture draw_picture(Texture texture, Random random) {
  Picture picture;
  picture.width = random.integer(480, 520);
  picture.height = random.integer(360, 390);
  if (random.chance(0.2F)) std::swap(picture.width, picture.height);
  const std::size_t pixels = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  picture.rgb.resize(pixels * 3);
  picture.grain.resize(pixels);
  const Scene scene = make_scene(texture, picture.width, picture.height, random);
  paint_scene(scene, make_look(random), picture);
  for (int n = random.integer(2, 6); n > 0; --n) paint_clutter(picture, random);
  fill_grain(picture.grain, random);
  return picture;
}

}  // namespace demo

#include "decode/png_maker.h"

#include <png.h>

#include <random>

namespace infeed::testing {
namespace {

int color_type(PngColor color) {
  switch (color) {
    case PngColor::kGray: return PNG_COLOR_TYPE_GRAY;
    case PngColor::kGrayAlpha: return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngColor::kPalette: return PNG_COLOR_TYPE_PALETTE;
    case PngColor::kRGB: return PNG_COLOR_TYPE_RGB;
    case PngColor::kRGBA: return PNG_COLOR_TYPE_RGB_ALPHA;
  }
  return PNG_COLOR_TYPE_RGB;
}

int num_channels(PngColor color) {
  switch (color) {
    case PngColor::kGrayAlpha: return 2;
    case PngColor::kRGB: return 3;
    case PngColor::kRGBA: return 4;
    default: return 1;
  }
}

png_color palette_entry(unsigned index) {
  return {static_cast<png_byte>(index * 37), static_cast<png_byte>(255 - index), static_cast<png_byte>(index * 11)};
}

// One sample per channel and pixel, each below 2^bit_depth.
std::vector<unsigned> make_samples(const PngRecipe& recipe) {
  std::mt19937 random(static_cast<unsigned>(recipe.seed));
  std::vector<unsigned> samples(static_cast<std::size_t>(recipe.width * recipe.height * num_channels(recipe.color)));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const unsigned value = i % 3 == 0 ? static_cast<unsigned>(random()) : static_cast<unsigned>(i / 5);
    samples[i] = value & ((1u << recipe.bit_depth) - 1);
  }
  return samples;
}

std::vector<std::uint8_t> packed(const std::vector<unsigned>& samples, const PngRecipe& recipe) {
  const int per_row = recipe.width * num_channels(recipe.color);
  const int row_bytes = (per_row * recipe.bit_depth + 7) / 8;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(row_bytes * recipe.height));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const int row = static_cast<int>(i) / per_row;
    const int bit = static_cast<int>(i) % per_row * recipe.bit_depth;
    std::uint8_t* const at = &bytes[static_cast<std::size_t>(row * row_bytes + bit / 8)];
    if (recipe.bit_depth == 16) {
      at[0] = static_cast<std::uint8_t>(samples[i] >> 8);
      at[1] = static_cast<std::uint8_t>(samples[i]);
    } else {
      at[0] = static_cast<std::uint8_t>(at[0] | samples[i] << (8 - recipe.bit_depth - bit % 8));
    }
  }
  return bytes;
}

std::uint8_t to_byte(unsigned sample, int bit_depth) {
  if (bit_depth == 16) return static_cast<std::uint8_t>(sample >> 8);
  return static_cast<std::uint8_t>(sample * 255 / ((1u << bit_depth) - 1));
}

std::vector<std::uint8_t> expected(const std::vector<unsigned>& samples, const PngRecipe& recipe) {
  const int channels = num_channels(recipe.color);
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < samples.size(); i += static_cast<std::size_t>(channels)) {
    const png_color entry = palette_entry(samples[i]);
    const std::uint8_t level = to_byte(samples[i], recipe.bit_depth);
    if (recipe.color == PngColor::kPalette) {
      rgb.insert(rgb.end(), {entry.red, entry.green, entry.blue});
    } else if (channels < 3) {
      rgb.insert(rgb.end(), {level, level, level});
    } else {
      rgb.insert(rgb.end(),
                 {level, to_byte(samples[i + 1], recipe.bit_depth), to_byte(samples[i + 2], recipe.bit_depth)});
    }
  }
  return rgb;
}

void set_chunks(png_structp png, png_infop info, const PngRecipe& recipe) {
  png_color palette[256];
  for (unsigned i = 0; i < 256; ++i) palette[i] = palette_entry(i);
  if (recipe.color == PngColor::kPalette) png_set_PLTE(png, info, palette, 1 << recipe.bit_depth);
  if (recipe.transparent) {
    png_byte alpha[2] = {0, 100};
    png_color_16 transparent{};
    png_set_tRNS(png, info, alpha, 2, &transparent);
  }
  png_set_gAMA(png, info, 0.9);  // no reader of ours may apply it
  if (recipe.orientation == 0) return;
  png_byte exif[26] = {'M',  'M',  0, 42, 0, 0, 0, 8, 0, 1,
                       0x01, 0x12, 0, 3,  0, 0, 0, 1, 0, static_cast<png_byte>(recipe.orientation)};
  png_set_eXIf_1(png, info, sizeof exif, exif);
}

void append(png_structp png, png_bytep bytes, std::size_t count) {
  auto& file = *static_cast<Bytes*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  file.insert(file.end(), begin, begin + count);
}

}  // namespace

std::string to_string(const PngRecipe& recipe) {
  static constexpr const char* kColors[] = {"gray", "gray and alpha", "palette", "rgb", "rgba"};
  std::string text = kColors[static_cast<int>(recipe.color)];
  text.append(", bits: ").append(std::to_string(recipe.bit_depth));
  if (recipe.interlaced) text += ", interlaced";
  if (recipe.transparent) text += ", transparent";
  return text;
}

PngFile make_png(const PngRecipe& recipe) {
  const std::vector<unsigned> samples = make_samples(recipe);
  std::vector<std::uint8_t> bytes = packed(samples, recipe);
  PngFile file{{}, expected(samples, recipe)};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file.bytes, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(recipe.width), static_cast<png_uint_32>(recipe.height),
               recipe.bit_depth, color_type(recipe.color), recipe.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  set_chunks(png, info, recipe);
  const std::size_t stride = bytes.size() / static_cast<std::size_t>(recipe.height);
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(recipe.height); ++y) rows.push_back(&bytes[y * stride]);
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace infeed::testing

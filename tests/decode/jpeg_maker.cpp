#include "decode/jpeg_maker.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "decode/libjpeg.h"

namespace infeed::testing {
namespace {

constexpr std::uint8_t kApp1 = 0xE1;
constexpr std::uint8_t kComment = 0xFE;
constexpr std::uint8_t kQuantTables = 0xDB;

J_COLOR_SPACE stored_space(JpegColor color) {
  switch (color) {
    case JpegColor::kGray: return JCS_GRAYSCALE;
    case JpegColor::kYCbCr: return JCS_YCbCr;
    case JpegColor::kRGB: return JCS_RGB;
    case JpegColor::kCMYK: return JCS_CMYK;
    case JpegColor::kYCCK: return JCS_YCCK;
  }
  return JCS_UNKNOWN;
}

bool has_ink(JpegColor color) { return color == JpegColor::kCMYK || color == JpegColor::kYCCK; }

void set_scans(jpeg_compress_struct& codec, const JpegRecipe& recipe, std::vector<jpeg_scan_info>& scans) {
  if (recipe.progressive) {
    jpeg_simple_progression(&codec);
    if (recipe.progressive_scans > 0) codec.num_scans = std::min(codec.num_scans, recipe.progressive_scans);
    return;
  }
  if (!recipe.scans_apart) return;
  scans.resize(static_cast<std::size_t>(codec.num_components));
  for (std::size_t i = 0; i < scans.size(); ++i) scans[i] = {1, {static_cast<int>(i)}, 0, DCTSIZE2 - 1, 0, 0};
  codec.scan_info = scans.data();
  codec.num_scans = static_cast<int>(scans.size());
}

void set_up(jpeg_compress_struct& codec, const JpegRecipe& recipe, std::vector<jpeg_scan_info>& scans) {
  codec.image_width = static_cast<JDIMENSION>(recipe.width);
  codec.image_height = static_cast<JDIMENSION>(recipe.height);
  codec.input_components = has_ink(recipe.color) ? 4 : 3;
  codec.in_color_space = has_ink(recipe.color) ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_colorspace(&codec, stored_space(recipe.color));
  jpeg_set_quality(&codec, recipe.quality, TRUE);
  codec.restart_interval = static_cast<unsigned>(recipe.restart_blocks);
  codec.arith_code = recipe.arithmetic ? TRUE : FALSE;
  codec.optimize_coding = recipe.own_tables ? TRUE : FALSE;
  for (int i = 0; i < codec.num_components; ++i) {
    codec.comp_info[i].h_samp_factor = recipe.sampling[static_cast<std::size_t>(i)].h;
    codec.comp_info[i].v_samp_factor = recipe.sampling[static_cast<std::size_t>(i)].v;
  }
  set_scans(codec, recipe, scans);
}

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_number(Bytes& to, std::uint32_t value, int size, bool big_endian) {
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (big_endian ? size - 1 - i : i);
    to.push_back(static_cast<std::byte>(value >> shift & 0xFF));
  }
}

}  // namespace

std::string to_string(const JpegRecipe& recipe) {
  static constexpr const char* kColors[] = {"gray", "ycc", "rgb", "cmyk", "ycck"};
  std::string text = kColors[static_cast<int>(recipe.color)];
  for (const Sampling s : recipe.sampling)
    text.append(" ").append(std::to_string(s.h)).append("x").append(std::to_string(s.v));
  if (recipe.progressive) text += " progressive";
  if (recipe.progressive_scans > 0) text.append(", scans: ").append(std::to_string(recipe.progressive_scans));
  if (recipe.scans_apart) text += " scans apart";
  if (recipe.arithmetic) text += " arithmetic";
  if (recipe.own_tables) text += " own tables";
  if (recipe.restart_blocks > 0) text.append(" restart ").append(std::to_string(recipe.restart_blocks));
  text.append(", quality ").append(std::to_string(recipe.quality));
  return text.append(", ").append(std::to_string(recipe.width)).append(" x ").append(std::to_string(recipe.height));
}

JpegRecipe random_recipe(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  static constexpr Sampling kLuma[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}, {3, 1}, {1, 3}};
  JpegRecipe recipe;
  recipe.width = pick(1, 300), recipe.height = pick(1, 300);
  const int color = pick(0, 9);
  recipe.color = color < 5 ? JpegColor::kYCbCr : static_cast<JpegColor>(color - 5);
  recipe.sampling[0] = recipe.sampling[3] = kLuma[pick(0, 9)];
  if (recipe.sampling[0].h == 2 && recipe.sampling[0].v == 2 && pick(0, 3) == 0) {
    recipe.sampling[1] = {pick(1, 2), pick(1, 2)}, recipe.sampling[2] = {pick(1, 2), pick(1, 2)};
  }
  const auto blocks = [&](std::size_t i) { return recipe.sampling[i].h * recipe.sampling[i].v; };
  const bool has_ink = recipe.color == JpegColor::kCMYK || recipe.color == JpegColor::kYCCK;
  if (blocks(0) + blocks(1) + blocks(2) + (has_ink ? blocks(3) : 0) > 10) recipe.sampling = {};
  recipe.quality = pick(1, 100);
  recipe.restart_blocks = pick(0, 2) == 0 ? pick(1, 40) : 0;
  recipe.own_tables = pick(0, 2) == 0;
  recipe.grain = pick(0, 40);
  recipe.seed = seed;
  return recipe;
}

std::vector<std::uint8_t> draw(int width, int height, double grain, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::array<double, 12> wave{};
  for (double& w : wave) w = uniform() * 6;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  std::size_t at = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double noise = (uniform() + uniform() + uniform() + uniform() - 2) * 1.73 * grain;
      const bool disc = std::hypot(x % 61 - 30, y % 47 - 23) < 11;
      for (std::size_t c = 0; c < 3; ++c) {
        const double soft = 90 * std::sin(x * 0.013 * wave[c] + wave[c + 3]) * std::cos(y * 0.017 * wave[c + 6]);
        const double level = (disc ? 255 - 40 * wave[c + 9] : 128 + soft) + noise;
        rgb[at++] = static_cast<std::uint8_t>(std::clamp(level, 0.0, 255.0));
      }
    }
  }
  return rgb;
}

std::vector<std::uint8_t> to_cmyk(std::span<const std::uint8_t> rgb) {
  std::vector<std::uint8_t> cmyk;
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) {
    cmyk.insert(cmyk.end(), {rgb[i], rgb[i + 1], rgb[i + 2], static_cast<std::uint8_t>(255 - (i / 3) % 90)});
  }
  return cmyk;
}

Bytes make_jpeg(const JpegRecipe& recipe) {
  return make_jpeg(recipe, draw(recipe.width, recipe.height, recipe.grain, recipe.seed));
}

Bytes make_jpeg(const JpegRecipe& recipe, std::span<const std::uint8_t> rgb) {
  std::vector<std::uint8_t> samples(rgb.begin(), rgb.end());
  if (has_ink(recipe.color)) samples = to_cmyk(rgb);
  jpeg_compress_struct codec;
  jpeg_error_mgr errors;
  codec.err = jpeg_std_error(&errors);  // exits on error: a recipe that libjpeg refuses is a fault of the test
  jpeg_create_compress(&codec);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &memory, &size);
  std::vector<jpeg_scan_info> scans;
  set_up(codec, recipe, scans);
  jpeg_start_compress(&codec, TRUE);
  const std::size_t stride = codec.image_width * static_cast<std::size_t>(codec.input_components);
  while (codec.next_scanline < codec.image_height) {
    JSAMPROW row = samples.data() + codec.next_scanline * stride;
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  Bytes file(begin, begin + size);
  jpeg_destroy_compress(&codec);
  std::free(memory);
  return file;
}

Bytes make_wild_jpeg(std::uint64_t seed) {
  Bytes file = make_jpeg({.sampling = {Sampling{2, 2}}, .quality = 100, .grain = 90, .seed = seed});
  std::mt19937_64 random(seed);
  for (std::size_t at = find_segment(file, kQuantTables); file[at + 1] == static_cast<std::byte>(kQuantTables);) {
    constexpr std::size_t kPayload = 5;  // FF DB, length, precision and number
    for (std::size_t i = 0; i < 64; ++i) file[at + kPayload + i] = static_cast<std::byte>(1 + random() % 255);
    at += kPayload + 64;
  }
  return file;
}

std::vector<std::uint8_t> decode_plainly(std::span<const std::byte> jpeg, int scale_num) {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  codec.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(jpeg.data()), static_cast<unsigned long>(jpeg.size()));
  jpeg_read_header(&codec, TRUE);
  codec.scale_num = static_cast<unsigned>(scale_num);
  codec.scale_denom = 8;
  codec.out_color_space = codec.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_start_decompress(&codec);
  const std::size_t stride = std::size_t{codec.output_width} * 4;
  std::vector<std::uint8_t> pixels(stride * codec.output_height);
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = pixels.data() + codec.output_scanline * stride;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  jpeg_destroy_decompress(&codec);
  return pixels;
}

Bytes with_segment(const Bytes& jpeg, std::uint8_t marker, std::span<const std::byte> payload) {
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  append_number(file, 0xFF00u | marker, 2, true);
  append_number(file, static_cast<std::uint32_t>(payload.size() + 2), 2, true);
  append(file, payload);
  append(file, std::span(jpeg).subspan(2));
  return file;
}

Bytes with_exif(const Bytes& jpeg, ExifOptions options) {
  const bool big = options.big_endian;
  Bytes exif = bytes_of(std::string_view(big ? "Exif\0\0MM" : "Exif\0\0II", 8));
  append_number(exif, 42, 2, big);
  append_number(exif, 8, 4, big);  // offset of IFD0
  append_number(exif, 2, 2, big);  // two entries: ImageLength (any tag before ours), Orientation
  for (const std::uint32_t tag : {0x0101u, 0x0112u}) {
    append_number(exif, tag, 2, big);
    append_number(exif, 3, 2, big);
    append_number(exif, 1, 4, big);
    append_number(exif, static_cast<std::uint32_t>(tag == 0x0112u ? options.orientation : 4), 2, big);
    append_number(exif, 0, 2, big);
  }
  append_number(exif, 0, 4, big);  // no further IFD
  Bytes file = with_segment(jpeg, kApp1, exif);
  if (!options.behind_others) return file;
  file = with_segment(file, kApp1, bytes_of("http://ns.adobe.com/xap/1.0/"));
  return with_segment(file, kComment, bytes_of("Exif is further on"));
}

std::size_t find_segment(std::span<const std::byte> jpeg, std::uint8_t marker) {
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    if (jpeg[at + 1] == std::byte{marker}) return at;
    at += 2 + (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 | std::to_integer<std::size_t>(jpeg[at + 3]));
  }
  return jpeg.size();
}

Bytes first_bytes(const Bytes& file, std::size_t count) {
  return {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(std::min(count, file.size()))};
}

Bytes bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace infeed::testing

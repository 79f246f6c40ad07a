#include "infeed/decode/decode.h"

#include <fmt/format.h>

#include "decode/decoder.h"

namespace infeed {
namespace {

void drop_fourth_byte(const std::uint8_t* from, std::uint8_t* to, int count) noexcept {
  for (int i = 0; i < count; ++i, from += 4, to += 3) {
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
  }
}

}  // namespace

std::string to_string(DecodePath path) { return path == DecodePath::kPlanes ? "planes" : "exact"; }

DecodePath decode_path_from_string(std::string_view name) {
  for (const DecodePath path : {DecodePath::kExact, DecodePath::kPlanes})
    if (name == to_string(path)) return path;
  throw ConfigError(fmt::format("decode is '{}'; it can be 'exact' or 'planes'.", name));
}

ImageInfo probe_image(std::span<const std::byte> bytes, const DecodeOptions& options) {
  return Decoder().open(bytes, options);
}

Image decode_image(std::span<const std::byte> bytes, const DecodeOptions& options) {
  Decoder decoder;
  const ImageInfo info = decoder.open(bytes, options);
  const PixelWindow& window = decoder.decode({0, 0, info.width, info.height}, info.width, info.height);
  Image image{window.width, window.height, {}};
  const std::size_t row_bytes = std::size_t{3} * static_cast<std::size_t>(window.width);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(window.height));
  for (int y = 0; y < window.height; ++y) {
    drop_fourth_byte(window.pixels + y * window.stride, image.pixels.data() + static_cast<std::size_t>(y) * row_bytes,
                     window.width);
  }
  return image;
}

}  // namespace infeed

#pragma once
/// Small JPEGs for tests that need some picture. Link JPEG::JPEG.

#include <jpeglib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace infeed::testing {

/// A baseline JPEG of one color with a gradient to the right and down, which a flip or a crop changes.
[[nodiscard]] inline std::string jpeg_bytes(int width, int height, std::array<int, 3> rgb) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> line(static_cast<std::size_t>(width) * 3);
  for (int y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] =
          static_cast<JSAMPLE>((static_cast<std::size_t>(rgb[i % 3]) + i / 3 + static_cast<std::size_t>(2 * y)) % 256);
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const std::string bytes(reinterpret_cast<const char*>(out), size);
  std::free(out);
  return bytes;
}

}  // namespace infeed::testing

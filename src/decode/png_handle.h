#pragma once
/// The C side of PNG decoding; as in jpeg_handle.h, functions return false and leave the cause in the handle.

#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace infeed {

/// Plain memory: neither copied nor moved, since libpng keeps a pointer to it.
struct PngHandle {
  png_structp png;
  png_infop info;
  std::jmp_buf escape;
  std::span<const std::byte> bytes;
  std::size_t position;  ///< next byte to read
  bool input_ended;      ///< asked for bytes behind the last one
  bool out_of_memory;
  bool interlaced;
  std::uint32_t width, height;
  std::size_t file_row_bytes;  ///< of a row before expansion
  int rows_done;
  char text[128];  ///< why a function returned false
};

/// Makes libpng's objects and reads the header of `bytes`, which must stay.
[[nodiscard]] bool png_open(PngHandle& handle, std::span<const std::byte> bytes) noexcept;

/// Begins to give rows of R, G, B, 255.
[[nodiscard]] bool png_begin(PngHandle& handle) noexcept;

/// Reads the next rows: the first `skipped` into `scratch`, then `count` to `rows`, `stride` bytes apart. Not of an
/// interlaced picture.
[[nodiscard]] bool png_read_next_rows(PngHandle& handle, int skipped, std::uint8_t* scratch, int count,
                                      std::uint8_t* rows, std::ptrdiff_t stride) noexcept;

/// Reads the whole of an interlaced picture.
[[nodiscard]] bool png_read_passes(PngHandle& handle, std::uint8_t* rows, std::ptrdiff_t stride) noexcept;

/// Gives libpng's memory back. Harmless on a closed handle.
void png_close(PngHandle& handle) noexcept;

}  // namespace infeed

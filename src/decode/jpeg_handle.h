#pragma once
/// The C side of JPEG decoding: libjpeg's object with our error exits, memory source and scan limit.
///
/// libjpeg leaves an error by longjmp, which must not pass a C++ object that has a destructor. So every call that may
/// fail stands in jpeg_handle.cpp, in functions that hold plain values only, return false, and leave the cause in
/// `failure`.

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/libjpeg.h"
#include "infeed/base/error.h"

namespace infeed {

struct JpegFailure {
  DecodeFault fault = DecodeFault::kCorrupt;
  bool out_of_memory = false;
  std::size_t byte = 0;  ///< how far the input was read
  int row = -1;          ///< output row about to be decoded; -1 within the header
  char text[JMSG_LENGTH_MAX] = {};
};

/// Plain memory: neither copied nor moved, since libjpeg keeps pointers into it.
struct JpegHandle {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf escape;
  std::span<const std::byte> bytes;
  bool alive = false;        ///< codec exists
  bool strict = true;        ///< lost data is a failure
  bool input_ended = false;  ///< asked for bytes behind the last one
  int max_scans = 0;         ///< of a progressive picture
  JDIMENSION crop_x = 0;     ///< the columns that rows hold
  JDIMENSION crop_width = 0;
  JpegFailure failure;
};

/// Makes libjpeg's object anew and reads the header of `bytes`, which must stay. Intentional, not a reset: libjpeg
/// keeps the tables of one file for the next, which would decode a file that lacks its own with a stranger's.
[[nodiscard]] bool jpeg_open(JpegHandle& handle, std::span<const std::byte> bytes, bool strict) noexcept;

/// The least number of bytes that the compressed blocks of this header need; less is a cut file or a memory bomb.
[[nodiscard]] std::uint64_t jpeg_least_bytes(const JpegHandle& handle) noexcept;

/// Begins to decode columns [x, x + width) at scale_num / 8 or a few more: crop_x and crop_width say which. Of a
/// picture in several scans, reads them all. Gray and colour come as R, G, B, unused; four components as C, M, Y, K.
[[nodiscard]] bool jpeg_begin(JpegHandle& handle, int scale_num, int x, int width) noexcept;

/// Decodes rows [y, y + height) to `rows`, `stride` bytes apart. On failure, output_scanline - y rows are there.
[[nodiscard]] bool jpeg_read_rows(JpegHandle& handle, int y, int height, std::uint8_t* rows,
                                  std::ptrdiff_t stride) noexcept;

/// Gives libjpeg's memory back. Harmless on a handle that is not alive.
void jpeg_close(JpegHandle& handle) noexcept;

}  // namespace infeed

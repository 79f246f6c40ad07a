#pragma once
/// One file format's reader, as the Decoder sees it: stored pixels, before orientation.

#include <cstddef>
#include <optional>
#include <span>

#include "decode/decoder.h"
#include "decode/pixel_buffer.h"
#include "decode/plane_window.h"
#include "decode/row_index.h"

namespace infeed {

/// What a header says of the stored picture.
struct StoredInfo {
  int width = 0, height = 0;  ///< pixels, before orientation
  int orientation = 1;        ///< EXIF 1..8
};

/// Opens bytes of its format, then decodes any number of windows of them. Errors: DecodeError, MemoryError; after one,
/// the next open() works.
class PictureSource {
 public:
  virtual ~PictureSource() = default;

  /// Reads the header. `bytes` must stay until the last decode.
  virtual StoredInfo open(std::span<const std::byte> bytes, const DecodeOptions& options) = 0;

  /// Exactly `window` of the stored picture, or what it is after scaling, in `buffer`.
  virtual PixelWindow decode(const Window& window, int out_width, int out_height, PixelBuffer& buffer) = 0;

  /// See Decoder; a format that has no rows to find ignores them.
  virtual void use_index(RowIndex*) {}
  [[nodiscard]] virtual std::size_t head_bytes() const { return 0; }

  /// `window` of the stored picture as planes, until the next decode; nullopt where only decode() will do.
  virtual std::optional<PlaneWindow> decode_planes(const Window& window) {
    static_cast<void>(window);
    return std::nullopt;
  }
};

/// Throws DecodeError unless 0 < width x height <= max_pixels. `format` names the file's format in the message.
void check_picture_size(const char* format, std::int64_t width, std::int64_t height, std::int64_t max_pixels);

}  // namespace infeed

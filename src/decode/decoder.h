#pragma once
/// One thread's decoder: opens a file's bytes, then decodes the window that a crop needs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "decode/plane_window.h"
#include "decode/row_index.h"
#include "infeed/decode/decode.h"

namespace infeed {

/// A rectangle in pixels of the oriented, full-size picture.
struct Window {
  int x = 0, y = 0, width = 0, height = 0;
};

/// Four-byte pixels (R, G, B, unused) of a window. The picture may be scaled: pixel (0, 0) here is pixel (x0, y0) of
/// the picture after scaling by scale_num / 8; the whole picture after scaling is full_width x full_height. Rows have
/// at least 64 readable bytes of padding behind their end.
struct PixelWindow {
  const std::uint8_t* pixels = nullptr;
  std::ptrdiff_t stride = 0;  ///< bytes
  int width = 0, height = 0;  ///< pixels held
  int x0 = 0, y0 = 0;
  int scale_num = 8;  ///< 8, 4, 2 or 1
  int full_width = 0, full_height = 0;
};

/// Throws DecodeError where a file of `file_bytes` that begins with `head` is neither JPEG nor PNG.
void check_signature(std::span<const std::byte> head, std::size_t file_bytes);

/// Handles and buffers are kept from picture to picture. One owner, one thread.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Reads the header. `bytes` must stay until the decode. Throws DecodeError.
  ImageInfo open(std::span<const std::byte> bytes, const DecodeOptions& options);

  /// Decodes `window` (within the picture) of what open() read; may hold more than asked, never less. `out_width` x
  /// `out_height` is the size to which the window will be resized: with options.exact == false it permits a DCT scale
  /// that keeps the window at least that large. The result lives until the next open(). Throws DecodeError.
  const PixelWindow& decode(const Window& window, int out_width, int out_height);

  /// Until the next open(): where the open file's rows begin, as far as that is known; decode() starts as late as that
  /// allows and adds the rows that it passes. Entry points that are not the file's cost time, no more: they are dropped.
  void use_index(RowIndex& index);
  /// Bytes of the open file before its coded data, where that is known; else 0.
  [[nodiscard]] std::size_t head_bytes() const;

  /// The same window as planes, for DecodePath::kPlanes; nullopt where the file is not of that kind: ask decode().
  [[nodiscard]] std::optional<PlaneWindow> decode_planes(const Window& window);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed

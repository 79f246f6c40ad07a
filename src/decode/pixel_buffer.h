#pragma once
/// Memory for four-byte pixels, kept from picture to picture.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace infeed {

/// Rows of four-byte pixels. Grows as needed; after a picture far larger than the next ones it shrinks again, so that
/// one huge file does not pin its memory in a worker for ever. Contents are not cleared.
class PixelBuffer {
 public:
  /// Above this many bytes, a buffer more than four times too large is given back.
  static constexpr std::size_t kKeepBytes = std::size_t{64} << 20;
  /// Readable behind the end of each row, for vector loads.
  static constexpr std::size_t kRowPaddingBytes = 64;

  /// Room for height rows of width pixels. Earlier contents are lost. Throws MemoryError.
  void resize(int width, int height);

  [[nodiscard]] std::uint8_t* row(int y) const noexcept { return bytes_.get() + y * stride_; }
  [[nodiscard]] std::ptrdiff_t stride() const noexcept { return stride_; }  ///< bytes; a multiple of 64
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const noexcept;
  };
  std::unique_ptr<std::uint8_t[], Free> bytes_;
  std::size_t capacity_ = 0;
  std::ptrdiff_t stride_ = 0;
};

}  // namespace infeed

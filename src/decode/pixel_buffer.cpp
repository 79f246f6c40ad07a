#include "decode/pixel_buffer.h"

#include <fmt/format.h>

#include <new>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

void PixelBuffer::Free::operator()(std::uint8_t* bytes) const noexcept {
  ::operator delete[](bytes, std::align_val_t{kAlignment});
}

void PixelBuffer::resize(int width, int height) {
  const std::size_t row_bytes = (static_cast<std::size_t>(width) * 4 + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t stride = row_bytes + kRowPaddingBytes;
  const std::size_t needed = stride * static_cast<std::size_t>(height);
  stride_ = static_cast<std::ptrdiff_t>(stride);
  const bool much_too_large = capacity_ > kKeepBytes && capacity_ / 4 > needed;
  if (needed <= capacity_ && !much_too_large) return;
  bytes_.reset();
  capacity_ = 0;
  auto* bytes = static_cast<std::uint8_t*>(::operator new[](needed, std::align_val_t{kAlignment}, std::nothrow));
  if (bytes == nullptr) {
    throw MemoryError(fmt::format("no memory for {} x {} pixels ({} MiB). Lower max_pixels or num_workers.", width,
                                  height, needed >> 20));
  }
  bytes_.reset(bytes);
  capacity_ = needed;
}

}  // namespace infeed

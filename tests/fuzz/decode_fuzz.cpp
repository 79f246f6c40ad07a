// Any bytes as a picture: a window or a DecodeError, no crash, no leak, bounded time. The first 8 bytes choose window,
// output size and options; the rest is the file.

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/decoder.h"

namespace {

constexpr std::size_t kChoiceBytes = 8;
constexpr std::int64_t kMaxPixels = 1 << 20;

// A place in [0, bound) from a byte.
int within(std::uint8_t choice, int bound) { return static_cast<int>(std::int64_t{choice} * bound / 256); }

void decode_window(std::span<const std::uint8_t> choice, std::span<const std::byte> file) {
  static infeed::Decoder decoder;  // one for all inputs: state that one file leaves for the next is a fault
  const infeed::DecodeOptions options{.exact = (choice[0] & 1) != 0,
                                      .orient = (choice[0] & 2) != 0,
                                      .allow_truncated = (choice[0] & 4) != 0,
                                      .max_pixels = kMaxPixels};
  const infeed::ImageInfo info = decoder.open(file, options);
  infeed::Window window{within(choice[1], info.width), within(choice[2], info.height), 1, 1};
  window.width += within(choice[3], info.width - window.x);
  window.height += within(choice[4], info.height - window.y);
  decoder.decode(window, 1 + choice[5], 1 + choice[6]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoiceBytes) return 0;
  const std::span<const std::uint8_t> choice(data, kChoiceBytes);
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size)).subspan(kChoiceBytes);
  try {
    decode_window(choice, file);
  } catch (const infeed::DecodeError&) {
  }
  try {
    static_cast<void>(infeed::decode_image(file, {.max_pixels = kMaxPixels}));
  } catch (const infeed::DecodeError&) {
  }
  return 0;
}

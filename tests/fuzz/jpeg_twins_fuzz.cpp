// Any bytes as a JPEG, decoded with our entropy decoder and by libjpeg alone: the same window, or the same error; with
// and without an index that another window's decode has made. Ours reads less below a window, and nothing before the
// restart marker or the index's entry it starts at: there it may not see damage. The first 8 bytes choose windows,
// leniency and index; the rest is the file.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "decode/jpeg.h"
#include "decode/row_index.h"
#include "infeed/base/error.h"

namespace {

constexpr std::size_t kChoiceBytes = 8;
constexpr std::int64_t kMaxPixels = 1 << 16;

struct Outcome {
  std::string pixels;
  std::string error;
  bool is_whole = false;
};

int within(std::uint8_t choice, int bound) { return static_cast<int>(std::int64_t{choice} * bound / 256); }

infeed::Window window_of(std::span<const std::uint8_t> corners, const infeed::StoredInfo& info) {
  infeed::Window window{within(corners[0], info.width), within(corners[1], info.height), 1, 1};
  window.width += within(corners[2], info.width - window.x);
  window.height += within(corners[3], info.height - window.y);
  return window;
}

void append_pixels(infeed::JpegSource& source, const infeed::Window& window, std::string& pixels) {
  static infeed::PixelBuffer buffer;
  const infeed::PixelWindow got = source.decode(window, 1, 1, buffer);
  const auto row_bytes = static_cast<std::size_t>(got.width) * 4;
  for (int y = 0; y < got.height; ++y)
    pixels.append(reinterpret_cast<const char*>(got.pixels + y * got.stride), row_bytes);
}

Outcome decode(infeed::JpegSource& source, std::span<const std::uint8_t> choice, std::span<const std::byte> file,
               infeed::RowIndex* index) {
  Outcome outcome;
  try {
    const infeed::DecodeOptions options{.allow_truncated = (choice[0] & 1) != 0, .max_pixels = kMaxPixels};
    const infeed::StoredInfo info = source.open(file, options);
    source.use_index(index);
    infeed::Window window{0, 0, info.width, info.height};
    if ((choice[0] & 2) != 0) window = window_of(choice.subspan(1, 4), info);
    outcome.is_whole = window.width == info.width && window.height == info.height;
    append_pixels(source, window, outcome.pixels);
  } catch (const infeed::DecodeError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

bool has_restarts(std::span<const std::byte> file) {
  constexpr std::byte kInterval[] = {std::byte{0xFF}, std::byte{0xDD}};
  return memmem(file.data(), file.size(), kInterval, sizeof kInterval) != nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoiceBytes) return 0;
  static infeed::JpegSource ours, libjpegs(true);
  const std::span<const std::uint8_t> choice(data, kChoiceBytes);
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size)).subspan(kChoiceBytes);
  infeed::RowIndex index;
  const bool by_index = (choice[0] & 4) != 0;
  if (by_index) {  // made by the rows down to another window
    const std::uint8_t above[kChoiceBytes] = {3, 0, choice[5], 0, choice[6]};
    decode(ours, above, file, &index);
  }
  const Outcome a = decode(ours, choice, file, by_index ? &index : nullptr),
                b = decode(libjpegs, choice, file, nullptr);
  if (a.pixels == b.pixels && a.error == b.error) return 0;
  if (a.error.empty() && !b.error.empty() && (has_restarts(file) || !a.is_whole)) return 0;
  std::fprintf(stderr, "ours: %zu bytes of pixels, \"%s\"\nlibjpeg: %zu bytes of pixels, \"%s\"\n", a.pixels.size(),
               a.error.c_str(), b.pixels.size(), b.error.c_str());
  std::abort();
}

// Any bytes as a JPEG, decoded with our entropy decoder and by libjpeg alone: the same window, or the same error; with
// and without an index that another window's decode has made, and after its planes were decoded. Ours reads less below a window, and nothing before the
// restart marker or the index's entry it starts at: there it may not see damage. The first 8 bytes choose windows,
// leniency, index and planes; the rest is the file.

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

// Reads all that planes promise: whole rows and 64 bytes behind them. They cover the window.
void read_planes(infeed::JpegSource& source, const infeed::Window& window) {
  const auto planes = source.decode_planes(window);
  if (!planes) return;
  [[maybe_unused]] static volatile std::uint8_t sink;
  for (int p = 0; p < planes->num_planes; ++p) {
    const infeed::SamplePlane& plane = planes->planes[static_cast<std::size_t>(p)];
    for (int y = 0; y < plane.height; ++y)
      for (int x = 0; x < plane.width + 64; ++x) sink = plane.samples[y * plane.stride + x];
  }
  const infeed::SamplePlane& luma = planes->planes[0];
  const bool covers = luma.x0 <= window.x && luma.y0 <= window.y && luma.x0 + luma.width >= window.x + window.width &&
                      luma.y0 + luma.height >= window.y + window.height;
  if (!covers) std::abort();
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
    if ((choice[0] & 8) != 0) read_planes(source, window);  // changes nothing of what follows
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

#include "decode/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "decode/jpeg.h"
#include "decode/orientation.h"
#include "decode/picture_source.h"
#include "decode/png.h"

namespace infeed {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kJpegSignature("\xFF\xD8\xFF", 3);
constexpr std::string_view kPngSignature("\x89PNG\r\n\x1A\n", 8);
constexpr std::size_t kShownBytes = 8;

// Whether the bytes are the signature's beginning, or begin with it.
bool agrees(Bytes bytes, std::string_view signature) {
  const std::size_t common = std::min(bytes.size(), signature.size());
  return std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(common), signature.begin(),
                    [](std::byte a, char b) { return a == std::byte(b); });
}

[[noreturn]] void throw_not_an_image(Bytes bytes, std::size_t file_bytes) {
  std::string shown;
  for (const std::byte b : bytes.first(std::min(kShownBytes, bytes.size()))) {
    shown += fmt::format("{:02x} ", std::to_integer<unsigned>(b));
  }
  throw DecodeError(DecodeFault::kNotAnImage,
                    fmt::format("not an image: {} bytes that begin with {}are neither JPEG nor PNG. "
                                "Leave the file out, or convert it.",
                                file_bytes, shown));
}

ImageFormat format_of(Bytes bytes) {
  if (bytes.empty()) {
    throw DecodeError(DecodeFault::kEmpty, "empty image: the file has no bytes. Replace it, or leave it out.");
  }
  check_signature(bytes, bytes.size());
  const bool jpeg = agrees(bytes, kJpegSignature);
  if (bytes.size() < (jpeg ? kJpegSignature : kPngSignature).size()) {
    throw DecodeError(DecodeFault::kTruncated, fmt::format("truncated {}: only {} bytes. Replace the file.",
                                                           jpeg ? "JPEG" : "PNG", bytes.size()));
  }
  return jpeg ? ImageFormat::kJPEG : ImageFormat::kPNG;
}

void check_window(const Window& window, const ImageInfo& info) {
  const bool inside = window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
                      window.width <= info.width - window.x && window.height <= info.height - window.y;
  if (inside) return;
  throw ConfigError(
      fmt::format("window of {} x {} at ({}, {}) does not lie within the picture of {} x {}. "
                  "Windows are in pixels of the oriented picture.",
                  window.width, window.height, window.x, window.y, info.width, info.height));
}

}  // namespace

void check_picture_size(const char* format, std::int64_t width, std::int64_t height, std::int64_t max_pixels) {
  if (width < 1 || height < 1) {
    throw DecodeError(DecodeFault::kBadHeader,
                      fmt::format("bad header: {} of {} x {} pixels. Replace the file.", format, width, height));
  }
  if (width <= max_pixels / height) return;
  throw DecodeError(DecodeFault::kTooLarge, fmt::format("too large: {} of {} x {} = {} pixels, max_pixels is {}. "
                                                        "Raise max_pixels if the file is to be trusted.",
                                                        format, width, height, width * height, max_pixels));
}

void check_signature(Bytes head, std::size_t file_bytes) {
  if (!agrees(head, kJpegSignature) && !agrees(head, kPngSignature)) throw_not_an_image(head, file_bytes);
}

struct Decoder::State {
  JpegSource jpeg;
  PngSource png;
  PixelBuffer stored;
  PixelBuffer seen;
  PictureSource* source = nullptr;  // of the open picture; null if there is none
  StoredInfo stored_info;
  ImageInfo info;
  PixelWindow result;
};

Decoder::Decoder() : state_(std::make_unique<State>()) {}
Decoder::~Decoder() = default;

ImageInfo Decoder::open(Bytes bytes, const DecodeOptions& options) {
  State& state = *state_;
  state.source = nullptr;
  state.info.format = format_of(bytes);
  PictureSource& source = state.info.format == ImageFormat::kJPEG ? static_cast<PictureSource&>(state.jpeg) : state.png;
  state.stored_info = source.open(bytes, options);
  state.info.width = state.stored_info.width;
  state.info.height = state.stored_info.height;
  state.info.orientation = state.stored_info.orientation;
  if (swaps_axes(state.info.orientation)) std::swap(state.info.width, state.info.height);
  state.source = &source;
  return state.info;
}

std::optional<PlaneWindow> Decoder::decode_planes(const Window& window) {
  State& state = *state_;
  if (state.source == nullptr) throw ConfigError("decode_planes() without an open picture. Call open() first.");
  check_window(window, state.info);
  if (state.info.orientation != 1) return std::nullopt;
  return state.source->decode_planes(window);
}

const PixelWindow& Decoder::decode(const Window& window, int out_width, int out_height) {
  State& state = *state_;
  if (state.source == nullptr) throw ConfigError("decode() without an open picture. Call open() first.");
  check_window(window, state.info);
  const int orientation = state.info.orientation;
  if (swaps_axes(orientation)) std::swap(out_width, out_height);
  const Window stored = stored_window(window, orientation, state.stored_info.width, state.stored_info.height);
  state.result = state.source->decode(stored, out_width, out_height, state.stored);
  if (orientation != 1) state.result = turned(state.result, orientation, state.seen);
  return state.result;
}

void Decoder::use_index(RowIndex& index) {
  if (state_->source == nullptr) throw ConfigError("use_index() without an open picture. Call open() first.");
  state_->source->use_index(&index);
  if (state_->info.format != ImageFormat::kJPEG) index = {.none = true};
}

std::size_t Decoder::head_bytes() const { return state_->source == nullptr ? 0 : state_->source->head_bytes(); }

}  // namespace infeed

#include "decode/jpeg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "decode/baseline.h"
#include "decode/cmyk.h"
#include "decode/exif.h"
#include "decode/jpeg_handle.h"
#include "decode/jpeg_header.h"
#include "decode/jpeg_plan.h"

// open():    header -> size, orientation; refuse bombs
// decode():  plan (scale, margin) -> the baseline decoder, where the file is of its kind; else libjpeg: begin (tables,
//            all scans of a progressive file) -> rows of the window. What follows the last needed row is never read

namespace infeed {
namespace {

constexpr std::uint8_t kGray = 128;
constexpr std::uint64_t kLenientShare = 64;  // a lenient decode wants at least 1/64 of the picture's least bytes

const char* advice(DecodeFault fault) {
  switch (fault) {
    case DecodeFault::kUnsupported: return "Re-encode it as baseline 8-bit JPEG.";
    case DecodeFault::kTooLarge: return "Leave it out, or make it smaller.";
    case DecodeFault::kBadHeader: return "Replace the file.";
    default: return "Replace the file, or set allow_truncated to keep the part that is there.";
  }
}

// libjpeg begins its warnings so; the fault says it already.
std::string_view reason(const JpegFailure& failure) {
  constexpr std::string_view kPrefix = "Corrupt JPEG data: ";
  const std::string_view text = failure.text;
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

[[noreturn]] void throw_failure(const JpegHandle& handle) {
  const JpegFailure& failure = handle.failure;
  const std::string place =
      failure.row < 0 ? std::string("in the header")
                      : fmt::format("at row {} of {}", failure.row, static_cast<int>(handle.codec.output_height));
  const std::string what = fmt::format("{} JPEG, {}, byte {} of {}: {}. ", to_string(failure.fault), place,
                                       failure.byte, handle.bytes.size(), reason(failure));
  if (failure.out_of_memory) throw MemoryError(what + "Lower num_workers or max_pixels.");
  throw DecodeError(failure.fault, what + advice(failure.fault));
}

[[noreturn]] void throw_lossless(int frame_marker) {
  const DecodeFault fault = DecodeFault::kUnsupported;
  throw DecodeError(fault, fmt::format("{} JPEG: lossless coding (frame marker {:x}). {}", to_string(fault),
                                       frame_marker, advice(fault)));
}

void check_least_bytes(const JpegHandle& handle, bool lenient) {
  const std::uint64_t least = jpeg_least_bytes(handle) / (lenient ? kLenientShare : 1);
  if (handle.bytes.size() >= least) return;
  throw DecodeError(DecodeFault::kTruncated,
                    fmt::format("truncated JPEG: {} x {} pixels take at least {} bytes, the file has {}. Replace it.",
                                handle.codec.image_width, handle.codec.image_height, least, handle.bytes.size()));
}

void fill_gray(PixelBuffer& buffer, int first_row, int num_rows) {
  for (int y = first_row; y < num_rows; ++y) {
    std::memset(buffer.row(y), kGray, static_cast<std::size_t>(buffer.stride()));
  }
}

}  // namespace

struct JpegSource::State {
  JpegHandle handle{};
  DecodeOptions options;
  BaselineDecoder baseline;
  RowIndex* index = nullptr;
  bool by_libjpeg = false;
  bool fresh = false;  // the header is read, no row is

  void read_header(std::span<const std::byte> bytes) {
    fresh = false;
    if (!jpeg_open(handle, bytes, !options.allow_truncated)) throw_failure(handle);
    fresh = true;
  }

  // By our own entropy decoder: the window itself, which needs no margin.
  std::optional<PixelWindow> read_baseline(const JpegPlan& plan, PixelBuffer& buffer) {
    const std::size_t left = handle.source.bytes_in_buffer;
    if (by_libjpeg || plan.scale_num != DCTSIZE || handle.input_ended) return std::nullopt;
    baseline.use_index(index, handle.bytes.size() - left);
    if (!baseline.decode(handle.codec, handle.bytes.last(left), plan.window, buffer)) return std::nullopt;
    PixelWindow result;
    result.pixels = buffer.row(0);
    result.stride = buffer.stride();
    return result;
  }

  std::optional<PlaneWindow> read_planes(const Window& window) {
    PlaneWindow planes;
    const std::size_t left = handle.source.bytes_in_buffer;
    if (by_libjpeg || handle.input_ended) return std::nullopt;
    baseline.use_index(index, handle.bytes.size() - left);
    if (!baseline.decode_planes(handle.codec, handle.bytes.last(left), window, planes)) return std::nullopt;
    return planes;
  }

  PixelWindow read_window(const JpegPlan& plan, PixelBuffer& buffer) {
    if (const auto result = read_baseline(plan, buffer)) return *result;
    const Window& decoded = plan.decoded;
    if (!jpeg_begin(handle, plan.scale_num, decoded.x, decoded.width)) throw_failure(handle);
    const int columns = static_cast<int>(handle.crop_width);
    buffer.resize(columns, decoded.height);
    int rows_done = decoded.height;
    if (!jpeg_read_rows(handle, decoded.y, decoded.height, buffer.row(0), buffer.stride())) {
      if (!options.allow_truncated || handle.failure.out_of_memory) throw_failure(handle);
      rows_done = std::max(0, static_cast<int>(handle.codec.output_scanline) - decoded.y);
      fill_gray(buffer, rows_done, decoded.height);
    }
    if (handle.codec.out_color_space == JCS_CMYK) {
      for (int y = 0; y < rows_done; ++y) cmyk_to_rgbx(buffer.row(y), columns);
    }
    if (index != nullptr && plan.scale_num == DCTSIZE) *index = {.none = true};
    PixelWindow result;
    const int first_column = static_cast<int>(handle.crop_x);
    result.pixels = buffer.row(plan.window.y - decoded.y) + std::ptrdiff_t{4} * (plan.window.x - first_column);
    result.stride = buffer.stride();
    return result;
  }
};

JpegSource::JpegSource(bool by_libjpeg) : state_(std::make_unique<State>()) { state_->by_libjpeg = by_libjpeg; }
JpegSource::~JpegSource() { jpeg_close(state_->handle); }

StoredInfo JpegSource::open(std::span<const std::byte> bytes, const DecodeOptions& options) {
  state_->options = options;
  const JpegHeader header = scan_jpeg_header(bytes);
  if (is_lossless_frame(header.frame_marker)) throw_lossless(header.frame_marker);
  state_->index = nullptr;
  state_->read_header(bytes);
  const jpeg_decompress_struct& codec = state_->handle.codec;
  check_picture_size("JPEG", codec.image_width, codec.image_height, options.max_pixels);
  check_least_bytes(state_->handle, options.allow_truncated);
  return {static_cast<int>(codec.image_width), static_cast<int>(codec.image_height),
          options.orient ? tiff_orientation(header.exif) : 1};
}

PixelWindow JpegSource::decode(const Window& window, int out_width, int out_height, PixelBuffer& buffer) {
  JpegHandle& handle = state_->handle;
  if (!state_->fresh) state_->read_header(handle.bytes);
  const JpegPlan plan =
      plan_jpeg(static_cast<int>(handle.codec.image_width), static_cast<int>(handle.codec.image_height), window,
                out_width, out_height, state_->options.exact);
  state_->fresh = false;
  PixelWindow result = state_->read_window(plan, buffer);
  jpeg_close(handle);  // gives coefficient arrays back at once; what follows the last needed row stays unread
  result.width = plan.window.width;
  result.height = plan.window.height;
  result.x0 = plan.window.x;
  result.y0 = plan.window.y;
  result.scale_num = plan.scale_num;
  result.full_width = plan.full_width;
  result.full_height = plan.full_height;
  return result;
}

void JpegSource::use_index(RowIndex* index) { state_->index = index; }

std::size_t JpegSource::head_bytes() const {
  const JpegHandle& handle = state_->handle;
  return handle.input_ended ? 0 : handle.bytes.size() - handle.source.bytes_in_buffer;
}

std::optional<PlaneWindow> JpegSource::decode_planes(const Window& window) {
  if (!state_->fresh) state_->read_header(state_->handle.bytes);
  return state_->read_planes(window);
}

}  // namespace infeed

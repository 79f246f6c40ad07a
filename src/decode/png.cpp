#include "decode/png.h"

#include <fmt/format.h>

#include <cstring>

#include "decode/exif.h"
#include "decode/png_handle.h"

namespace infeed {
namespace {

constexpr std::uint8_t kGray = 128;
constexpr std::uint64_t kMaxDeflateRatio = 1032;

DecodeFault fault_of(const PngHandle& handle, bool in_header) {
  if (handle.input_ended) return DecodeFault::kTruncated;
  return in_header ? DecodeFault::kBadHeader : DecodeFault::kCorrupt;
}

[[noreturn]] void throw_failure(const PngHandle& handle, bool in_header) {
  const DecodeFault fault = fault_of(handle, in_header);
  const std::string place =
      in_header ? std::string("in the header") : fmt::format("at row {} of {}", handle.rows_done, handle.height);
  const std::string what = fmt::format("{} PNG, {}, byte {} of {}: {}. ", to_string(fault), place, handle.position,
                                       handle.bytes.size(), handle.text);
  if (handle.out_of_memory) throw MemoryError(what + "Lower num_workers or max_pixels.");
  throw DecodeError(fault, what + "Replace the file" +
                               (in_header ? "." : ", or set allow_truncated to keep the part that is there."));
}

void check_least_bytes(const PngHandle& handle) {
  const std::uint64_t least = handle.file_row_bytes * std::uint64_t{handle.height} / kMaxDeflateRatio;
  if (handle.bytes.size() >= least) return;
  throw DecodeError(DecodeFault::kTruncated,
                    fmt::format("truncated PNG: {} x {} pixels take at least {} bytes, the file has {}. Replace it.",
                                handle.width, handle.height, least, handle.bytes.size()));
}

}  // namespace

struct PngSource::State {
  PngHandle handle{};
  DecodeOptions options;
  bool fresh = false;  // the header is read, no row is

  void read_header(std::span<const std::byte> bytes) {
    fresh = false;
    if (!png_open(handle, bytes)) throw_failure(handle, true);
    fresh = true;
  }

  // Returns the row of the picture that the buffer's first one holds.
  int read_rows(const Window& window, PixelBuffer& buffer) {
    if (!png_begin(handle)) throw_failure(handle, true);
    const int first_row = handle.interlaced ? 0 : window.y;
    const int num_rows = handle.interlaced ? static_cast<int>(handle.height) : window.height;
    buffer.resize(static_cast<int>(handle.width), num_rows);
    if (options.allow_truncated) {
      for (int y = 0; y < num_rows; ++y) std::memset(buffer.row(y), kGray, std::size_t{4} * handle.width);
    }
    const bool complete = handle.interlaced ? png_read_passes(handle, buffer.row(0), buffer.stride())
                                            : png_read_next_rows(handle, window.y, buffer.row(0), num_rows,
                                                                 buffer.row(0), buffer.stride());
    if (!complete && (!options.allow_truncated || handle.out_of_memory)) throw_failure(handle, false);
    if (!complete && !handle.interlaced && handle.rows_done <= window.y) {
      std::memset(buffer.row(0), kGray, std::size_t{4} * handle.width);  // it served as scratch
    }
    return first_row;
  }
};

PngSource::PngSource() : state_(std::make_unique<State>()) {}
PngSource::~PngSource() { png_close(state_->handle); }

StoredInfo PngSource::open(std::span<const std::byte> bytes, const DecodeOptions& options) {
  state_->options = options;
  state_->read_header(bytes);
  const PngHandle& handle = state_->handle;
  check_picture_size("PNG", handle.width, handle.height, options.max_pixels);
  if (!options.allow_truncated) check_least_bytes(handle);
  return {static_cast<int>(handle.width), static_cast<int>(handle.height),
          options.orient ? tiff_orientation(find_png_exif(bytes)) : 1};
}

PixelWindow PngSource::decode(const Window& window, int, int, PixelBuffer& buffer) {
  PngHandle& handle = state_->handle;
  if (!state_->fresh) state_->read_header(handle.bytes);
  state_->fresh = false;
  const int first_row = state_->read_rows(window, buffer);
  png_close(handle);
  PixelWindow result;
  result.pixels = buffer.row(window.y - first_row) + std::ptrdiff_t{4} * window.x;
  result.stride = buffer.stride();
  result.width = window.width;
  result.height = window.height;
  result.x0 = window.x;
  result.y0 = window.y;
  result.full_width = static_cast<int>(handle.width);
  result.full_height = static_cast<int>(handle.height);
  return result;
}

}  // namespace infeed

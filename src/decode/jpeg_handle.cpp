#include "decode/jpeg_handle.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "decode/jpeg_faults.h"

// `setjmp` stands first in each function that calls libjpeg; nothing after it needs a destructor, and what must survive
// the jump lives in the handle.

namespace infeed {
namespace {

constexpr int kRowsPerCall = 16;
constexpr int kMaxScans = 500;
constexpr int kMinScans = 64;
constexpr std::uint64_t kScanBlocks = 32'768'000;  // scans x blocks: a few seconds of work

JpegHandle& handle_of(j_common_ptr codec) { return *static_cast<JpegHandle*>(codec->client_data); }

std::uint64_t num_blocks(const jpeg_decompress_struct& codec) {
  std::uint64_t blocks = 0;
  for (int i = 0; i < codec.num_components; ++i) {
    blocks += std::uint64_t{codec.comp_info[i].width_in_blocks} * codec.comp_info[i].height_in_blocks;
  }
  return blocks;
}

void record(JpegHandle& handle, DecodeFault fault) {
  JpegFailure& failure = handle.failure;
  failure.fault = fault;
  const std::size_t left = handle.input_ended ? 0 : handle.source.bytes_in_buffer;
  failure.byte = handle.bytes.size() - std::min(left, handle.bytes.size());
  failure.row = handle.codec.output_height > 0 ? static_cast<int>(handle.codec.output_scanline) : -1;
}

[[noreturn]] void leave(JpegHandle& handle) { std::longjmp(handle.escape, 1); }

[[noreturn]] void leave_with(JpegHandle& handle, DecodeFault fault, const char* text) {
  record(handle, fault);
  std::strncpy(handle.failure.text, text, sizeof handle.failure.text - 1);
  leave(handle);
}

[[noreturn]] void on_error(j_common_ptr codec) {
  JpegHandle& handle = handle_of(codec);
  record(handle, jpeg_error_fault(*codec, handle.input_ended));
  handle.failure.out_of_memory = jpeg_error_is_memory(*codec);
  codec->err->format_message(codec, handle.failure.text);
  leave(handle);
}

void on_message(j_common_ptr codec, int level) {
  if (level >= 0 || !jpeg_warning_loses_data(*codec)) return;
  JpegHandle& handle = handle_of(codec);
  if (!handle.strict) return;
  record(handle, jpeg_warning_fault(*codec, handle.input_ended));
  codec->err->format_message(codec, handle.failure.text);
  leave(handle);
}

void say_nothing(j_common_ptr) {}
void do_nothing(j_decompress_ptr) {}

// An end-of-image marker, for ever: the decoder then says itself whether blocks are missing.
boolean on_input_end(j_decompress_ptr codec) {
  static constexpr JOCTET kEndOfImage[] = {0xFF, 0xD9};
  handle_of(reinterpret_cast<j_common_ptr>(codec)).input_ended = true;
  codec->src->next_input_byte = kEndOfImage;
  codec->src->bytes_in_buffer = sizeof kEndOfImage;
  return TRUE;
}

void on_skip(j_decompress_ptr codec, long num_bytes) {
  if (num_bytes <= 0) return;
  const auto skipped = static_cast<std::size_t>(num_bytes);
  if (skipped > codec->src->bytes_in_buffer) {
    on_input_end(codec);
    return;
  }
  codec->src->next_input_byte += skipped;
  codec->src->bytes_in_buffer -= skipped;
}

void on_progress(j_common_ptr codec) {
  JpegHandle& handle = handle_of(codec);
  if (handle.codec.input_scan_number <= handle.max_scans) return;
  leave_with(handle, DecodeFault::kCorrupt, "more scans than any encoder writes");
}

void prepare(JpegHandle& handle, std::span<const std::byte> bytes, bool strict) {
  handle.bytes = bytes;
  handle.strict = strict;
  handle.input_ended = false;
  handle.failure = {};
  handle.codec.err = jpeg_std_error(&handle.errors);
  handle.codec.client_data = &handle;
  handle.codec.output_height = 0;
  handle.errors.error_exit = on_error;
  handle.errors.emit_message = on_message;
  handle.errors.output_message = say_nothing;
  handle.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  handle.source.bytes_in_buffer = bytes.size();
  handle.source.init_source = do_nothing;
  handle.source.fill_input_buffer = on_input_end;
  handle.source.skip_input_data = on_skip;
  handle.source.resync_to_restart = jpeg_resync_to_restart;
  handle.source.term_source = do_nothing;
  handle.progress = {};
  handle.progress.progress_monitor = on_progress;
}

// An arithmetic decoder reads zeros behind the end and says nothing.
void check_arithmetic_end(JpegHandle& handle) {
  if (handle.strict && handle.input_ended && handle.codec.arith_code == TRUE) {
    leave_with(handle, DecodeFault::kTruncated, "the arithmetic code ends early");
  }
}

// Of several scans: whether each component had one, and, if the file stops without its end marker, whether the scans
// that came left nothing to refine.
void check_scans(JpegHandle& handle) {
  const jpeg_decompress_struct& codec = handle.codec;
  bool complete = true;
  for (int i = 0; i < codec.num_components; ++i) {
    if (codec.comp_info[i].quant_table == nullptr) complete = false;
    if (codec.coef_bits == nullptr || !handle.input_ended) continue;
    for (int k = 0; k < DCTSIZE2; ++k) complete = complete && codec.coef_bits[i][k] == 0;
  }
  if (!complete && handle.strict) leave_with(handle, DecodeFault::kTruncated, "scans are missing");
}

// Coefficients that are not refined to the end are smoothed across blocks, further than any margin.
bool smooths_blocks(const jpeg_decompress_struct& codec) {
  if (codec.coef_bits == nullptr || codec.do_block_smoothing == FALSE) return false;
  for (int i = 0; i < codec.num_components; ++i) {
    for (int k = 0; k < DCTSIZE2; ++k) {
      if (codec.coef_bits[i][k] != 0) return true;
    }
  }
  return false;
}

// Where a crop of columns would not equal the full decode's: in smoothed blocks; and in rare samplings at a scale,
// since jpeg_crop_scanline takes the chroma's width from the sampling factors and not from the scale that was chosen
// for it.
bool must_keep_columns(const jpeg_decompress_struct& codec) {
  const bool scaled = codec.scale_num != codec.scale_denom;
  return smooths_blocks(codec) || (scaled && std::max(codec.max_h_samp_factor, codec.max_v_samp_factor) > 2);
}

// The upsampling of rows was chosen for the whole picture; of one or two samples it makes something else.
constexpr int kLeastSamples = 4;

void crop_columns(JpegHandle& handle, int x, int width) {
  jpeg_decompress_struct& codec = handle.codec;
  width = std::max(width, kLeastSamples * codec.max_h_samp_factor);
  x = std::min(x, std::max(0, static_cast<int>(codec.output_width) - width));
  handle.crop_x = 0;
  handle.crop_width = codec.output_width;
  if (static_cast<JDIMENSION>(width) >= codec.output_width || must_keep_columns(codec)) return;
  handle.crop_x = static_cast<JDIMENSION>(x);
  handle.crop_width = static_cast<JDIMENSION>(width);
  jpeg_crop_scanline(&codec, &handle.crop_x, &handle.crop_width);
}

}  // namespace

bool jpeg_open(JpegHandle& handle, std::span<const std::byte> bytes, bool strict) noexcept {
  jpeg_close(handle);
  prepare(handle, bytes, strict);
  if (setjmp(handle.escape) != 0) return false;
  jpeg_create_decompress(&handle.codec);
  handle.alive = true;
  handle.codec.src = &handle.source;
  handle.codec.progress = &handle.progress;
  handle.max_scans = kMaxScans;
  jpeg_read_header(&handle.codec, TRUE);
  const std::uint64_t scans = kScanBlocks / std::max<std::uint64_t>(1, num_blocks(handle.codec));
  handle.max_scans = static_cast<int>(std::clamp<std::uint64_t>(scans, kMinScans, kMaxScans));
  return true;
}

std::uint64_t jpeg_least_bytes(const JpegHandle& handle) noexcept {
  if (handle.codec.arith_code == TRUE) return 0;  // a block may take a small part of a bit
  // Huffman codes have at least one bit: a block needs its DC code and, unless progressive, an end-of-block code.
  const std::uint64_t bits_per_block = handle.codec.progressive_mode == TRUE ? 1 : 2;
  return num_blocks(handle.codec) * bits_per_block / 8;
}

bool jpeg_begin(JpegHandle& handle, int scale_num, int x, int width) noexcept {
  if (setjmp(handle.escape) != 0) return false;
  jpeg_decompress_struct& codec = handle.codec;
  codec.scale_num = static_cast<unsigned>(scale_num);
  codec.scale_denom = DCTSIZE;
  codec.out_color_space = codec.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  codec.dct_method = JDCT_ISLOW;
  codec.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&codec);
  if (jpeg_has_multiple_scans(&codec) == TRUE) check_scans(handle);
  crop_columns(handle, x, width);
  return true;
}

bool jpeg_read_rows(JpegHandle& handle, int y, int height, std::uint8_t* rows, std::ptrdiff_t stride) noexcept {
  if (setjmp(handle.escape) != 0) return false;
  jpeg_decompress_struct& codec = handle.codec;
  const auto first = static_cast<JDIMENSION>(y);
  const auto end = static_cast<JDIMENSION>(y + height);
  if (first > 0) jpeg_skip_scanlines(&codec, first);
  while (codec.output_scanline < end) {
    JSAMPROW pointers[kRowsPerCall];
    const JDIMENSION count = std::min<JDIMENSION>(kRowsPerCall, end - codec.output_scanline);
    for (JDIMENSION i = 0; i < count; ++i) pointers[i] = rows + (codec.output_scanline - first + i) * stride;
    jpeg_read_scanlines(&codec, pointers, count);
  }
  check_arithmetic_end(handle);
  return true;
}

void jpeg_close(JpegHandle& handle) noexcept {
  if (handle.alive) jpeg_destroy_decompress(&handle.codec);
  handle.alive = false;
}

}  // namespace infeed

#include "tools/rewrite.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "decode/jpeg_header.h"
#include "decode/libjpeg.h"
#include "infeed/base/error.h"
#include "infeed/dataset/decode_images.h"
#include "infeed/transform/compose.h"

// libjpeg leaves an error by longjmp: what calls it are the functions of Codec, which hold plain values only.

namespace infeed {
namespace {

constexpr int kFirstApp = JPEG_APP0, kLastApp = JPEG_APP0 + 15, kAdobeApp = JPEG_APP0 + 14, kIccApp = JPEG_APP0 + 2;
constexpr unsigned kWholeMarker = 0xFFFF;

struct Codec {
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  char text[JMSG_LENGTH_MAX];
  jpeg_decompress_struct in, other;
  jpeg_compress_struct out;
  jpeg_destination_mgr destination;
  unsigned char* bytes;  // malloc's; libjpeg's own memory destination loses its block where an error ends the encoder
  std::size_t capacity, num_bytes;
};

[[noreturn]] void leave(j_common_ptr codec) {
  Codec& state = *static_cast<Codec*>(codec->client_data);
  codec->err->format_message(codec, state.text);
  std::longjmp(state.escape, 1);
}

// A warning means that data are lost: such a file stays as it is.
void on_message(j_common_ptr codec, int level) {
  if (level < 0) leave(codec);
}

void grow(j_compress_ptr out, std::size_t capacity) {
  Codec& c = *static_cast<Codec*>(out->client_data);
  void* bytes = std::realloc(c.bytes, capacity);
  if (bytes == nullptr) ERREXIT1(out, JERR_OUT_OF_MEMORY, 0);
  c.bytes = static_cast<unsigned char*>(bytes);
  c.destination.next_output_byte = c.bytes + c.capacity;
  c.destination.free_in_buffer = capacity - c.capacity;
  c.capacity = capacity;
}

void start_output(j_compress_ptr out) { grow(out, std::size_t{1} << 17); }

boolean continue_output(j_compress_ptr out) {
  grow(out, static_cast<Codec*>(out->client_data)->capacity * 2);
  return TRUE;
}

void end_output(j_compress_ptr out) {
  Codec& c = *static_cast<Codec*>(out->client_data);
  c.num_bytes = c.capacity - c.destination.free_in_buffer;
}

void begin_output(Codec& c) {
  jpeg_create_compress(&c.out);
  c.destination = {nullptr, 0, start_output, continue_output, end_output};
  c.out.dest = &c.destination;
}

bool is_marker(const jpeg_marker_struct& marker, const char* text) {
  const std::size_t size = std::strlen(text);
  return marker.data_length >= size && std::memcmp(marker.data, text, size) == 0;
}

class Recoder {
 public:
  Recoder() : codec_(std::make_unique<Codec>()) {
    Codec& c = *codec_;
    std::memset(&c, 0, sizeof c);
    jpeg_std_error(&c.errors);
    c.errors.error_exit = leave;
    c.errors.emit_message = on_message;
    c.in.err = c.other.err = c.out.err = &c.errors;
    c.in.client_data = c.other.client_data = c.out.client_data = &c;
  }
  ~Recoder() {
    jpeg_destroy_decompress(&codec_->in);
    jpeg_destroy_decompress(&codec_->other);
    jpeg_destroy_compress(&codec_->out);
    std::free(codec_->bytes);
  }
  Recoder(const Recoder&) = delete;
  Recoder& operator=(const Recoder&) = delete;

  std::vector<std::byte> recode(std::span<const std::byte> file, bool restart_rows) {
    if (!write(*codec_, file, restart_rows)) fail();
    return result();
  }
  std::vector<std::byte> encode(const std::vector<std::uint8_t>& rgb, int width, int quality,
                                std::span<const std::byte> icc_source) {
    if (!encode(*codec_, rgb, width, quality, icc_source)) fail();
    return result();
  }
  bool compare(std::span<const std::byte> a, std::span<const std::byte> b) {
    bool same = true;
    if (!compare(*codec_, a, b, same)) fail();
    return same;
  }

 private:
  [[noreturn]] void fail() const { throw DataError(codec_->text); }
  [[nodiscard]] std::vector<std::byte> result() const {
    const auto* bytes = reinterpret_cast<const std::byte*>(codec_->bytes);
    return {bytes, bytes + codec_->num_bytes};
  }

  static void open(jpeg_decompress_struct& in, std::span<const std::byte> file) {
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_save_markers(&in, JPEG_COM, kWholeMarker);
    for (int app = kFirstApp; app <= kLastApp; ++app) jpeg_save_markers(&in, app, kWholeMarker);
    jpeg_read_header(&in, TRUE);
  }

  // The encoder writes JFIF's and Adobe's itself.
  static void copy_markers(const jpeg_decompress_struct& in, jpeg_compress_struct& out, bool icc_only) {
    for (const jpeg_marker_struct* marker = in.marker_list; marker != nullptr; marker = marker->next) {
      const bool jfif = out.write_JFIF_header == TRUE && marker->marker == kFirstApp && is_marker(*marker, "JFIF");
      const bool adobe = out.write_Adobe_marker == TRUE && marker->marker == kAdobeApp && is_marker(*marker, "Adobe");
      const bool icc = marker->marker == kIccApp && is_marker(*marker, "ICC_PROFILE");
      if (jfif || adobe || (icc_only && !icc)) continue;
      jpeg_write_marker(&out, marker->marker, marker->data, marker->data_length);
    }
  }

  static bool write(Codec& c, std::span<const std::byte> file, bool restart_rows) noexcept {
    if (setjmp(c.escape) != 0) return false;
    open(c.in, file);
    jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&c.in);
    begin_output(c);
    jpeg_copy_critical_parameters(&c.in, &c.out);
    c.out.arith_code = FALSE;
    c.out.optimize_coding = FALSE;  // intentional: files of one data set share their tables, which decoders cache
    c.out.restart_in_rows = restart_rows ? 1 : 0;
    jpeg_write_coefficients(&c.out, coefficients);
    copy_markers(c.in, c.out, false);
    jpeg_finish_compress(&c.out);
    jpeg_finish_decompress(&c.in);
    return true;
  }

  static bool encode(Codec& c, const std::vector<std::uint8_t>& rgb, int width, int quality,
                     std::span<const std::byte> icc_source) noexcept {
    if (setjmp(c.escape) != 0) return false;
    open(c.in, icc_source);
    begin_output(c);
    c.out.image_width = static_cast<JDIMENSION>(width);
    c.out.image_height = static_cast<JDIMENSION>(rgb.size() / 3 / static_cast<std::size_t>(width));
    c.out.input_components = 3;
    c.out.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c.out);
    jpeg_set_quality(&c.out, quality, TRUE);
    jpeg_start_compress(&c.out, TRUE);
    copy_markers(c.in, c.out, true);
    while (c.out.next_scanline < c.out.image_height) {
      auto* row = const_cast<JSAMPLE*>(rgb.data() + std::size_t{3} * c.out.next_scanline * c.out.image_width);
      jpeg_write_scanlines(&c.out, &row, 1);
    }
    jpeg_finish_compress(&c.out);
    return true;
  }

  static bool same_tables(const jpeg_component_info& a, const jpeg_component_info& b) noexcept {
    return a.width_in_blocks == b.width_in_blocks && a.height_in_blocks == b.height_in_blocks &&
           a.h_samp_factor == b.h_samp_factor && a.v_samp_factor == b.v_samp_factor && a.quant_table != nullptr &&
           b.quant_table != nullptr &&
           std::memcmp(a.quant_table->quantval, b.quant_table->quantval, sizeof a.quant_table->quantval) == 0;
  }

  static bool compare(Codec& c, std::span<const std::byte> a, std::span<const std::byte> b, bool& same) noexcept {
    if (setjmp(c.escape) != 0) return false;
    open(c.in, a);
    open(c.other, b);
    jvirt_barray_ptr* of_a = jpeg_read_coefficients(&c.in);
    jvirt_barray_ptr* of_b = jpeg_read_coefficients(&c.other);
    same = c.in.num_components == c.other.num_components && c.in.image_width == c.other.image_width &&
           c.in.image_height == c.other.image_height && c.in.jpeg_color_space == c.other.jpeg_color_space;
    for (int i = 0; same && i < c.in.num_components; ++i) same = same_component(c, of_a[i], of_b[i], i);
    return true;
  }

  static bool same_component(Codec& c, jvirt_barray_ptr a, jvirt_barray_ptr b, int place) {
    const jpeg_component_info& info = c.in.comp_info[place];
    if (!same_tables(info, c.other.comp_info[place])) return false;
    for (JDIMENSION y = 0; y < info.height_in_blocks; ++y) {
      const auto* row_a = c.in.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&c.in), a, y, 1, FALSE)[0];
      const auto* row_b = c.other.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&c.other), b, y, 1, FALSE)[0];
      if (std::memcmp(row_a, row_b, info.width_in_blocks * sizeof(JBLOCK)) != 0) return false;
    }
    return true;
  }

  std::unique_ptr<Codec> codec_;
};

}  // namespace

JpegKind kind_of(std::span<const std::byte> file) noexcept {
  JpegKind kind;
  if (file.size() < 4 || file[0] != std::byte{0xFF} || file[1] != std::byte{0xD8}) return kind;
  const JpegHeader header = scan_jpeg_header(file);
  const int frame = header.frame_marker;
  kind.jpeg = frame != 0 && !is_lossless_frame(frame);
  kind.arithmetic = frame >= 0xC9;
  kind.progressive = frame == 0xC2 || frame == 0xCA;
  return kind;
}

std::vector<std::byte> recode(std::span<const std::byte> file, bool restart_rows) {
  return Recoder().recode(file, restart_rows);
}

bool same_coefficients(std::span<const std::byte> a, std::span<const std::byte> b) { return Recoder().compare(a, b); }

std::vector<std::byte> shrink(std::span<const std::byte> file, int shorter_side, int quality) {
  const ImageSource source{.bytes = file};
  std::vector<std::uint8_t> rgb;
  int width = 0;
  const DecodeImagesOptions options{.transforms = {resize(shorter_side), to_layout(ImageLayout::kHWC)}, .threads = 1};
  decode_images({&source, 1}, options, [&](std::size_t, const Shape& shape) -> std::byte* {
    width = static_cast<int>(shape[1]);
    rgb.resize(static_cast<std::size_t>(shape.numel()));
    return reinterpret_cast<std::byte*>(rgb.data());
  });
  return Recoder().encode(rgb, width, quality, file);
}

}  // namespace infeed

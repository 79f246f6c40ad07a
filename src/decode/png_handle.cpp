#include "decode/png_handle.h"

#include <cstdlib>
#include <cstring>

namespace infeed {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{8} << 20;

PngHandle& handle_of(png_structp png) { return *static_cast<PngHandle*>(png_get_error_ptr(png)); }

void on_error(png_structp png, png_const_charp text) {
  PngHandle& handle = handle_of(png);
  std::strncpy(handle.text, text, sizeof handle.text - 1);
  std::longjmp(handle.escape, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, std::size_t count) {
  PngHandle& handle = handle_of(png);
  if (handle.bytes.size() - handle.position < count) {
    handle.input_ended = true;
    png_error(png, "the data end");
  }
  std::memcpy(to, handle.bytes.data() + handle.position, count);
  handle.position += count;
}

png_voidp on_malloc(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr && png != nullptr) handle_of(png).out_of_memory = true;
  return memory;
}

void on_free(png_structp, png_voidp memory) { std::free(memory); }

// No ancillary chunk changes the pixels we give, and some may be made to unpack to gigabytes.
void ignore_ancillary_chunks(png_structp png) {
  static constexpr png_byte kIgnored[] =
      "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kIgnored, sizeof kIgnored / 5);
}

}  // namespace

bool png_open(PngHandle& handle, std::span<const std::byte> bytes) noexcept {
  png_close(handle);
  handle.bytes = bytes;
  handle.position = 0;
  handle.input_ended = false;
  handle.out_of_memory = false;
  handle.rows_done = 0;
  std::memset(handle.text, 0, sizeof handle.text);
  if (setjmp(handle.escape) != 0) return false;
  handle.png =
      png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &handle, on_error, on_warning, nullptr, on_malloc, on_free);
  if (handle.png != nullptr) handle.info = png_create_info_struct(handle.png);
  if (handle.info == nullptr) {
    handle.out_of_memory = true;
    return false;
  }
  png_set_user_limits(handle.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller checks the area
  png_set_chunk_malloc_max(handle.png, kMaxChunkBytes);
  ignore_ancillary_chunks(handle.png);
  png_set_read_fn(handle.png, &handle, on_read);
  png_read_info(handle.png, handle.info);
  handle.width = png_get_image_width(handle.png, handle.info);
  handle.height = png_get_image_height(handle.png, handle.info);
  handle.file_row_bytes = png_get_rowbytes(handle.png, handle.info);
  handle.interlaced = png_get_interlace_type(handle.png, handle.info) != PNG_INTERLACE_NONE;
  return true;
}

bool png_begin(PngHandle& handle) noexcept {
  if (setjmp(handle.escape) != 0) return false;
  png_structp png = handle.png;
  const png_byte color = png_get_color_type(png, handle.info);
  png_set_strip_16(png);  // the high byte, as Pillow takes it
  png_set_packing(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  png_set_filler(png, 0xFF, PNG_FILLER_AFTER);
  if (handle.interlaced) png_set_interlace_handling(png);
  png_read_update_info(png, handle.info);
  return true;
}

bool png_read_next_rows(PngHandle& handle, int skipped, std::uint8_t* scratch, int count, std::uint8_t* rows,
                        std::ptrdiff_t stride) noexcept {
  if (setjmp(handle.escape) != 0) return false;
  while (handle.rows_done < skipped + count) {
    const int row = handle.rows_done - skipped;
    png_read_row(handle.png, row < 0 ? scratch : rows + row * stride, nullptr);
    ++handle.rows_done;
  }
  return true;
}

bool png_read_passes(PngHandle& handle, std::uint8_t* rows, std::ptrdiff_t stride) noexcept {
  if (setjmp(handle.escape) != 0) return false;
  constexpr int kPasses = 7;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::uint32_t y = 0; y < handle.height; ++y) png_read_row(handle.png, rows + y * stride, nullptr);
  }
  return true;
}

void png_close(PngHandle& handle) noexcept {
  if (handle.png != nullptr) png_destroy_read_struct(&handle.png, &handle.info, nullptr);
  handle.png = nullptr;
  handle.info = nullptr;
}

}  // namespace infeed

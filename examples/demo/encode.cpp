#include "encode.h"

#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace demo {
namespace {

constexpr int kQuality = 90;
constexpr int kMaxTries = 5;
constexpr int kFirstStrength = 60;  // gives about 96 kB for a usual picture
constexpr int kMaxStrength = 255;   // of grain, in 1/256: deviation 52 levels

struct ErrorState {
  jpeg_error_mgr base;  // first: libjpeg hands its address back
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  (*info->err->format_message)(info, state->message);
  std::longjmp(state->jump, 1);
}

}  // namespace

struct JpegEncoder::State {
  jpeg_compress_struct info{};
  ErrorState error{};
  unsigned char* out = nullptr;  // libjpeg's, by malloc
  unsigned long out_bytes = 0;
  std::vector<std::uint8_t> pixels;

  void add_grain(const Picture& picture, int strength);
  [[nodiscard]] bool compress(int width, int height) noexcept;
};

JpegEncoder::JpegEncoder() : state_(std::make_unique<State>()) {
  state_->info.err = jpeg_std_error(&state_->error.base);
  state_->error.base.error_exit = leave;
  if (setjmp(state_->error.jump) != 0) throw std::runtime_error(std::string("libjpeg: ") + state_->error.message);
  jpeg_create_compress(&state_->info);
}

JpegEncoder::~JpegEncoder() {
  jpeg_destroy_compress(&state_->info);
  std::free(state_->out);
}

void JpegEncoder::State::add_grain(const Picture& picture, int strength) {
  pixels.resize(picture.rgb.size());
  for (std::size_t i = 0; i < picture.grain.size(); ++i) {
    const int grain = (picture.grain[i] * strength) / 256;
    for (std::size_t c = 3 * i; c < 3 * i + 3; ++c) {
      pixels[c] = static_cast<std::uint8_t>(std::clamp(picture.rgb[c] + grain, 0, 255));
    }
  }
}

// Nothing here owns anything: longjmp may leave it at any line.
bool JpegEncoder::State::compress(int width, int height) noexcept {
  if (setjmp(error.jump) != 0) {
    jpeg_abort_compress(&info);
    return false;
  }
  std::free(out);
  out = nullptr;
  out_bytes = 0;
  jpeg_mem_dest(&info, &out, &out_bytes);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);  // 4:2:0 is the default
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + std::size_t{info.next_scanline} * info.image_width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

// The size grows with the grain: regula falsi between what was too small and what was too large.
std::vector<std::uint8_t> JpegEncoder::encode(const Picture& picture, std::size_t target_bytes) {
  const auto target = static_cast<double>(target_bytes);
  double low = 0, low_bytes = 0.25 * target, high = kMaxStrength, high_bytes = 2.2 * target;  // guesses, until measured
  int strength = kFirstStrength;
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    state_->add_grain(picture, strength);
    if (!state_->compress(picture.width, picture.height)) {
      throw std::runtime_error(std::string("libjpeg: ") + state_->error.message);
    }
    const auto bytes = static_cast<double>(state_->out_bytes);
    if (std::abs(bytes - target) <= 0.05 * target) break;
    if (bytes < target) {
      low = strength, low_bytes = bytes;
    } else {
      high = strength, high_bytes = bytes;
    }
    strength = static_cast<int>(std::lround(low + (high - low) * (target - low_bytes) / (high_bytes - low_bytes)));
    strength = std::clamp(strength, static_cast<int>(low) + 1, std::max(static_cast<int>(high) - 1, 1));
    if (high - low <= 1) break;
  }
  return {state_->out, state_->out + state_->out_bytes};
}

}  // namespace demo

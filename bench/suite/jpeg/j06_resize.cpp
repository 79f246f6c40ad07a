// What does the fused pass cost, RGBX to float32 CHW 224 with flip and normalisation, into a row that stays in the
// cache? Windows of random resized crops of 500 x 375; taps are set up for each.
#include <fmt/format.h>

#include "machine.h"
#include "pictures.h"
#include "rows.h"
#include "transform/fused.h"

namespace bench::jpeg {
namespace {

using infeed::CpuLevel;

constexpr int kWidth = 500, kHeight = 375;

class Resizer {
 public:
  Resizer(CpuLevel level, int samples)
      : kernel_(level), samples_(samples), row_(static_cast<std::size_t>(chain_.output_shape().numel()) * 4) {
    for (std::size_t i = 0; i < picture_.size(); ++i) picture_[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
  }
  double operator()(std::uint64_t round) {
    const double before = thread_cpu_s();
    for (int i = 0; i < samples_; ++i) {
      const infeed::FusedPlan plan =
          plan_sample(chain_, kWidth, kHeight, infeed::Philox(7, round, static_cast<std::uint64_t>(i)));
      kernel_.run(chain_, plan, window(plan.window), {row_.data(), chain_.dtype(), chain_.output_shape()});
    }
    return (thread_cpu_s() - before) / samples_ * 1e6;
  }

 private:
  static constexpr std::ptrdiff_t kStride = 2048;
  [[nodiscard]] infeed::PixelWindow window(const infeed::Window& at) const {
    infeed::PixelWindow pixels;
    pixels.pixels = picture_.data() + at.y * kStride + std::ptrdiff_t{4} * at.x;
    pixels.stride = kStride;
    pixels.width = at.width, pixels.height = at.height;
    pixels.x0 = at.x, pixels.y0 = at.y;
    pixels.full_width = kWidth, pixels.full_height = kHeight;
    return pixels;
  }

  infeed::Compose chain_ = w1a_chain();
  infeed::FusedKernel kernel_;
  int samples_;
  std::vector<std::uint8_t> picture_ = std::vector<std::uint8_t>(kStride * kHeight + 64);
  std::vector<std::byte> row_;
};

}  // namespace

void resize(const Bed& bed, Report& report) {
  struct Level {
    CpuLevel level;
    const char* name;
    double must, aim;
  };
  for (const Level& level : {Level{CpuLevel::kAVX2, "AVX2", 70, 60}, {CpuLevel::kAVX512, "AVX-512", 45, 33}}) {
    if (level.level > infeed::best_cpu_level()) continue;
    Resizer resizer(level.level, bed.size(2000, 20));
    report.add({.id = "J6",
                .what = fmt::format("resize RGBX to float32 CHW 224, row in the cache, {}", level.name),
                .unit = "us",
                .rounds = interleave(bed.rounds, {std::ref(resizer)})[0],
                .better = Better::kLower,
                .must = level.must,
                .aim = level.aim});
  }
}

}  // namespace bench::jpeg

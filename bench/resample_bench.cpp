// One sample through the fused pass: a RandomResizedCrop window of a 500 x 375 picture to 224 x 224, a flip for half of
// them, normalised. Crops change from sample to sample, so the taps are set up each time, as in training.
//
// Read: time per sample, one thread. In cache: avx512 float32 CHW at most 45 us, avx2 at most 75 us. "ring" writes to
// 64 slots in turn (38 MB of float32): add the memory's price. "val" is Resize(256) + CenterCrop(224) of the whole.
// Name: scene / level / dtype / layout / slots.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "transform/fused.h"

namespace {

using namespace infeed;

constexpr int kWidth = 500, kHeight = 375, kNumPlans = 512, kRingSlots = 64;

struct Picture {
  static constexpr std::ptrdiff_t kStride = 2048;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kStride * kHeight + 64);

  Picture() {
    Philox rng(1, 2, 3);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next_u32());
  }
  [[nodiscard]] PixelWindow window(const Window& w) const {
    return {.pixels = bytes.data() + w.y * kStride + 4 * w.x,
            .stride = kStride,
            .width = w.width,
            .height = w.height,
            .x0 = w.x,
            .y0 = w.y,
            .scale_num = 8,
            .full_width = kWidth,
            .full_height = kHeight};
  }
};

class Slots {
 public:
  Slots(std::size_t row_bytes, int count) : row_((row_bytes + 63) / 64 * 64), count_(count) {
    const std::size_t all = (row_ * static_cast<std::size_t>(count) + (2U << 20)) >> 21 << 21;
    base_.reset(static_cast<std::byte*>(std::aligned_alloc(2U << 20, all)));
    madvise(base_.get(), all, MADV_HUGEPAGE);
    std::fill_n(base_.get(), all, std::byte{1});
  }
  std::byte* next() { return base_.get() + row_ * static_cast<std::size_t>(turn_++ % count_); }

 private:
  std::size_t row_;
  int count_;
  int turn_ = 0;
  std::unique_ptr<std::byte, decltype(&std::free)> base_{nullptr, &std::free};
};

std::vector<FusedPlan> plans_of(const Compose& chain) {
  std::vector<FusedPlan> plans;
  for (int i = 0; i < kNumPlans; ++i)
    plans.push_back(plan_sample(chain, kWidth, kHeight, Philox(7, 0, static_cast<std::uint64_t>(i))));
  return plans;
}

void run(benchmark::State& state, CpuLevel level, const Compose& chain, int slots) {
  const Picture picture;
  const auto plans = plans_of(chain);
  FusedKernel kernel(level);
  const Shape shape = chain.output_shape();
  Slots ring(static_cast<std::size_t>(shape.numel()) * itemsize(chain.dtype()), slots);
  std::size_t turn = 0;
  for (auto _ : state) {
    const FusedPlan& plan = plans[turn++ % plans.size()];
    kernel.run(chain, plan, picture.window(plan.window), ArrayView(ring.next(), chain.dtype(), shape));
    benchmark::ClobberMemory();
  }
}

void plan_only(benchmark::State& state) {
  const Compose chain{random_resized_crop(224), random_horizontal_flip()};
  std::uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(plan_sample(chain, kWidth, kHeight, Philox(7, 0, index++)));
}

Compose chain_of(const std::string& scene, DType dtype, ImageLayout layout) {
  std::vector<ImageOp> ops;
  if (scene == "rrc") ops = {random_resized_crop(224), random_horizontal_flip()};
  if (scene == "val") ops = {resize(256), center_crop(224)};
  if (scene == "whole") ops = {resize(224, 224)};
  if (scene == "copy") ops = {center_crop(224), random_horizontal_flip()};
  if (dtype != DType::kUInt8) ops.emplace_back(normalize());
  ops.emplace_back(to_dtype(dtype));
  ops.emplace_back(to_layout(layout));
  return Compose(ops);
}

void add(const std::string& scene, CpuLevel level, DType dtype, ImageLayout layout, int slots) {
  const std::string name = scene + "/" + std::string(to_string(level)) + "/" + std::string(to_string(dtype)) +
                           (layout == ImageLayout::kCHW ? "/CHW" : "/HWC") + (slots > 1 ? "/ring" : "/slot");
  benchmark::RegisterBenchmark(name.c_str(), run, level, chain_of(scene, dtype, layout), slots)
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("plan", plan_only)->Unit(benchmark::kMicrosecond);
  for (const CpuLevel level : cpu_levels()) {
    for (const ImageLayout layout : {ImageLayout::kCHW, ImageLayout::kHWC})
      for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kUInt8})
        add("rrc", level, dtype, layout, 1);
    add("rrc", level, DType::kFloat32, ImageLayout::kCHW, kRingSlots);
    add("val", level, DType::kFloat32, ImageLayout::kCHW, 1);
    add("val", level, DType::kUInt8, ImageLayout::kHWC, 1);
    add("whole", level, DType::kUInt8, ImageLayout::kHWC, 1);
    add("copy", level, DType::kFloat32, ImageLayout::kCHW, 1);
    add("copy", level, DType::kUInt8, ImageLayout::kHWC, 1);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// What does the way by planes save, from the file's bytes to the row?
// Read: us a sample, one thread, a random resized crop of 500 x 375 (quality 90, 4:2:0) to float32 CHW 224, normalised.
// `Exact` and `Planes` decode and resize; `Held` resizes whole planes that are in memory already, as a cache has them.
// Planes: 0.75 of Exact. The file is not read here: 12 us more where it is. "64": into 64 rows in turn, 38 MB.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "decode/jpeg_maker.h"
#include "transform/fused.h"

namespace {

using namespace infeed;
using testing::Bytes;

constexpr int kNumPictures = 256;
const Compose kChain{random_resized_crop(224), random_horizontal_flip(), normalize()};

const std::vector<Bytes>& files() {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> made;
    for (std::uint64_t i = 0; i < kNumPictures; ++i)
      made.push_back(testing::make_jpeg(
          {.width = 500, .height = 375, .sampling = {testing::Sampling{2, 2}}, .grain = 17, .seed = i}));
    return made;
  }();
  return all;
}

class Slots {
 public:
  explicit Slots(std::int64_t count) : count_(static_cast<std::size_t>(count)) {
    const std::size_t all = (kRow * count_ + (2U << 20)) >> 21 << 21;
    base_.reset(static_cast<std::byte*>(std::aligned_alloc(2U << 20, all)));
    madvise(base_.get(), all, MADV_HUGEPAGE);
    std::memset(base_.get(), 1, all);
  }
  ArrayView next() { return {base_.get() + kRow * (turn_++ % count_), kChain.dtype(), kChain.output_shape()}; }

 private:
  static constexpr std::size_t kRow = 3 * 224 * 224 * sizeof(float);
  std::size_t count_, turn_ = 0;
  std::unique_ptr<std::byte, decltype(&std::free)> base_{nullptr, &std::free};
};

FusedPlan plan_of(std::uint64_t i) { return plan_sample(kChain, 500, 375, Philox(7, 0, i)); }

void Exact(benchmark::State& state) {
  Decoder decoder;
  FusedKernel kernel;
  Slots slots(state.range(0));
  std::uint64_t i = 0;
  for (auto _ : state) {
    const FusedPlan plan = plan_of(i);
    decoder.open(files()[i++ % kNumPictures], {});
    kernel.run(kChain, plan, decoder.decode(plan.window, 224, 224), slots.next());
  }
}

void Planes(benchmark::State& state) {
  Decoder decoder;
  FusedKernel kernel;
  Slots slots(state.range(0));
  std::uint64_t i = 0;
  for (auto _ : state) {
    const FusedPlan plan = plan_of(i);
    decoder.open(files()[i++ % kNumPictures], {});
    kernel.run(kChain, plan, *decoder.decode_planes(plan.window), slots.next());
  }
}

void Held(benchmark::State& state) {
  std::vector<Decoder> decoders(kNumPictures);
  std::vector<PlaneWindow> planes;
  for (std::size_t i = 0; i < kNumPictures; ++i) {
    decoders[i].open(files()[i], {});
    planes.push_back(*decoders[i].decode_planes({0, 0, 500, 375}));
  }
  FusedKernel kernel;
  Slots slots(state.range(0));
  std::uint64_t i = 0;
  for (auto _ : state) {
    const FusedPlan plan = plan_of(i);
    kernel.run(kChain, plan, planes[i++ % kNumPictures], slots.next());
  }
}

BENCHMARK(Exact)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK(Planes)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK(Held)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  static_cast<void>(files());  // made before the clock runs
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

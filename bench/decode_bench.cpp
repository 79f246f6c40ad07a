// What does a picture cost, and what does decoding only its crop save?
// Read: us per picture of 500 x 375, quality 90, 4:2:0, about 96 kB (the counter says). `Window` is the crop of a
// random resized crop: 0.8 of `Whole`, since Huffman decoding runs from the top to the crop's last row. `Plainly` is
// libjpeg without us: Whole above it means a copy too many. `WindowByIndex` knows the rows' entry points: 0.8 of `Window`.
// `Giant`: 400 x 400 of 4000 x 3000 pixels; by index or restart rows it is decoded from its own first row on. `Progressive` is 3 to 4 times dearer: transcode such files.

#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "decode/decoder.h"
#include "decode/jpeg_maker.h"

namespace {

using infeed::testing::Bytes;
using infeed::testing::JpegRecipe;
using infeed::testing::Sampling;

constexpr int kWidth = 500;
constexpr int kHeight = 375;
constexpr int kOutput = 224;
constexpr int kNumPictures = 64;  // more than fit a cache of second level

JpegRecipe photo() { return {.width = kWidth, .height = kHeight, .sampling = {Sampling{2, 2}}, .grain = 17}; }

std::vector<Bytes> pictures(JpegRecipe recipe) {
  std::vector<Bytes> files;
  for (int i = 0; i < kNumPictures; ++i) {
    recipe.seed = static_cast<std::uint64_t>(i);
    files.push_back(make_jpeg(recipe));
  }
  return files;
}

// Area 0.08 to 1 of the picture, ratio 3/4 to 4/3: torchvision's distribution.
std::vector<infeed::Window> random_crops() {
  std::mt19937 random(7);
  const auto uniform = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<infeed::Window> crops;
  while (crops.size() < kNumPictures) {
    const double area = uniform(0.08, 1) * kWidth * kHeight;
    const double ratio = std::exp(uniform(std::log(0.75), std::log(4.0 / 3)));
    const int w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (w > kWidth || h > kHeight) continue;
    crops.push_back({static_cast<int>(uniform(0, kWidth - w)), static_cast<int>(uniform(0, kHeight - h)), w, h});
  }
  return crops;
}

void run(benchmark::State& state, const JpegRecipe& recipe, const std::vector<infeed::Window>& windows, int output,
         bool exact = true) {
  const std::vector<Bytes> files = pictures(recipe);
  infeed::Decoder decoder;
  std::size_t i = 0;
  for (auto _ : state) {
    decoder.open(files[i % kNumPictures], {.exact = exact});
    benchmark::DoNotOptimize(decoder.decode(windows[i % windows.size()], output, output).pixels);
    ++i;
  }
  state.counters["file_kB"] = static_cast<double>(files[0].size()) / 1000;
}

const std::vector<infeed::Window>& whole() {
  static const std::vector<infeed::Window> windows{{0, 0, kWidth, kHeight}};
  return windows;
}

void Plainly(benchmark::State& state) {
  const std::vector<Bytes> files = pictures(photo());
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(infeed::testing::decode_plainly(files[i++ % kNumPictures]).data());
}

void Header(benchmark::State& state) {
  const Bytes file = make_jpeg(photo());
  infeed::Decoder decoder;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.open(file, {}));
}

void Whole(benchmark::State& state) { run(state, photo(), whole(), kOutput); }
void Window(benchmark::State& state) { run(state, photo(), random_crops(), kOutput); }
void WholeAtHalfScale(benchmark::State& state) { run(state, photo(), whole(), 180, false); }
void WholeAtQuarterScale(benchmark::State& state) { run(state, photo(), whole(), 90, false); }

void Turned(benchmark::State& state) {
  const Bytes file = infeed::testing::with_exif(make_jpeg(photo()), {.orientation = 6});
  infeed::Decoder decoder;
  for (auto _ : state) {
    decoder.open(file, {});
    benchmark::DoNotOptimize(decoder.decode({0, 0, kHeight, kWidth}, kOutput, kOutput).pixels);
  }
}

void Progressive(benchmark::State& state) {
  JpegRecipe recipe = photo();
  recipe.progressive = true;
  run(state, recipe, random_crops(), kOutput);
}

void WindowByIndex(benchmark::State& state) {
  const std::vector<Bytes> files = pictures(photo());
  const std::vector<infeed::Window> windows = random_crops();
  std::vector<infeed::RowIndex> indexes(kNumPictures);
  infeed::Decoder decoder;
  const auto decode = [&](std::size_t i, const infeed::Window& window) {
    decoder.open(files[i], {});
    decoder.use_index(indexes[i]);
    benchmark::DoNotOptimize(decoder.decode(window, kOutput, kOutput).pixels);
  };
  for (std::size_t i = 0; i < kNumPictures; ++i) decode(i, whole()[0]);
  std::size_t i = 0;
  for (auto _ : state) {
    decode(i % kNumPictures, windows[i % windows.size()]);
    ++i;
  }
}

// state.range(0): 0 as it is, 1 by index, 2 with restart markers at each row.
void Giant(benchmark::State& state) {
  JpegRecipe recipe = photo();
  recipe.width = 4000;
  recipe.height = 3000;
  if (state.range(0) == 2) recipe.restart_blocks = 250;
  const Bytes file = make_jpeg(recipe);
  infeed::RowIndex index;
  infeed::Decoder decoder;
  for (int y = 2600;; y = (y + 700) % 2600) {
    decoder.open(file, {});
    if (state.range(0) == 1) decoder.use_index(index);
    if (y == 2600) {
      benchmark::DoNotOptimize(decoder.decode({0, 0, 4000, 3000}, kOutput, kOutput).pixels);
      continue;
    }
    if (!state.KeepRunning()) break;
    benchmark::DoNotOptimize(decoder.decode({1700, y, 400, 400}, kOutput, kOutput).pixels);
  }
}

BENCHMARK(Plainly)->Unit(benchmark::kMicrosecond);
BENCHMARK(Header)->Unit(benchmark::kMicrosecond);
BENCHMARK(Whole)->Unit(benchmark::kMicrosecond);
BENCHMARK(Window)->Unit(benchmark::kMicrosecond);
BENCHMARK(WindowByIndex)->Unit(benchmark::kMicrosecond);
BENCHMARK(Giant)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond);
BENCHMARK(WholeAtHalfScale)->Unit(benchmark::kMicrosecond);
BENCHMARK(WholeAtQuarterScale)->Unit(benchmark::kMicrosecond);
BENCHMARK(Turned)->Unit(benchmark::kMicrosecond);
BENCHMARK(Progressive)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();

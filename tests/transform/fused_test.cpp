#include "transform/fused.h"

#include <bit>
#include <cmath>
#include <thread>

#include "base/half.h"
#include "infeed/base/error.h"
#include "transform/picture.h"
#include "transform/reference.h"
#include "transform/scenes.h"

namespace infeed::testing {
namespace {

constexpr double kTolerance = 0.06;  // levels
const Compose kFloatHWC{to_dtype(DType::kFloat32), to_layout(ImageLayout::kHWC)};

std::vector<std::byte> run(FusedKernel& kernel, const Compose& chain, const Scene& scene, const HeldPixels& held,
                           std::size_t offset = 0) {
  GuardedOutput out(chain, scene.plan, offset);
  kernel.run(chain, scene.plan, held.pixels, out.view);
  EXPECT_TRUE(out.guards_intact()) << scene.name;
  return out.bytes();
}

std::vector<std::byte> run(FusedKernel& kernel, const Compose& chain, const Scene& scene) {
  return run(kernel, chain, scene, HeldPixels(scene.plan.window, scene.seed));
}

template <typename T>
std::vector<T> values(const std::vector<std::byte>& bytes) {
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

double worst_error(const Scene& scene, const std::vector<float>& hwc) {
  const Reference exact(scene.plan, [&](int x, int y, int c) { return pixel(x, y, c, scene.seed); });
  double worst = 0;
  for (int i = 0; i < static_cast<int>(hwc.size()); ++i) {
    const int x = i / 3 % scene.plan.out_width, y = i / 3 / scene.plan.out_width;
    worst = std::max(worst, std::abs(hwc[static_cast<std::size_t>(i)] * 255.0 - exact.at(x, y, i % 3)));
  }
  return worst;
}

std::vector<Compose> every_format() {
  std::vector<Compose> all;
  for (const ImageLayout layout : {ImageLayout::kCHW, ImageLayout::kHWC}) {
    all.push_back(Compose{to_layout(layout)});
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32})
      all.push_back(Compose{normalize(), to_dtype(dtype), to_layout(layout)});
  }
  return all;
}

Scene random_scene(int seed) {
  Philox rng(11, 0, static_cast<std::uint64_t>(seed));
  const auto side = [&](int most) { return 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(most))); };
  PlanBuilder plan(side(90), side(90));
  if (rng.bernoulli(0.3)) plan.center_crop({side(120), side(120)});
  if (rng.bernoulli(0.3)) plan.flip();
  if (rng.bernoulli(0.5)) plan.crop(0, 0, side(plan.width()), side(plan.height()));
  if (rng.bernoulli(0.8)) plan.resize(side(70), side(70));
  if (rng.bernoulli(0.3)) plan.center_crop({side(80), side(80)});
  if (rng.bernoulli(0.5)) plan.flip();
  return {"random " + std::to_string(seed), seed, plan.finish()};
}

class FusedTest : public ::testing::TestWithParam<CpuLevel> {
 protected:
  FusedKernel kernel_{GetParam()};
};

TEST_P(FusedTest, IsWithinAFractionOfALevelOfExactArithmetic) {
  for (const Scene& scene : scenes())
    EXPECT_LE(worst_error(scene, values<float>(run(kernel_, kFloatHWC, scene))), kTolerance) << scene.name;
}

TEST_P(FusedTest, IsAsExactOnRandomGeometry) {
  for (int seed = 0; seed < 300; ++seed) {
    const Scene scene = random_scene(seed);
    EXPECT_LE(worst_error(scene, values<float>(run(kernel_, kFloatHWC, scene))), kTolerance) << scene.name;
  }
}

TEST_P(FusedTest, MakesTheBitsOfThePortableKernels) {
  if (GetParam() == CpuLevel::kPortable) GTEST_SKIP() << "they are compared with themselves";
  FusedKernel portable(CpuLevel::kPortable);
  for (const Scene& scene : scenes()) {
    const HeldPixels held(scene.plan.window, scene.seed);
    for (const Compose& chain : every_format())
      EXPECT_EQ(run(kernel_, chain, scene, held), run(portable, chain, scene, held))
          << scene.name << chain.to_state().to_json();
  }
}

TEST_P(FusedTest, MakesThePortableBitsOnRandomGeometry) {
  if (GetParam() == CpuLevel::kPortable) GTEST_SKIP() << "they are compared with themselves";
  FusedKernel portable(CpuLevel::kPortable);
  const auto formats = every_format();
  for (int seed = 300; seed < 700; ++seed) {
    const Compose& chain = formats[static_cast<std::size_t>(seed) % formats.size()];
    const Scene scene = random_scene(seed);
    EXPECT_EQ(run(kernel_, chain, scene), run(portable, chain, scene)) << scene.name << chain.to_state().to_json();
  }
}

TEST_P(FusedTest, WritesTheSameAtAnyAddressAndNothingBeyond) {
  for (const Scene& scene : scenes()) {
    const HeldPixels held(scene.plan.window, scene.seed);
    for (const Compose& chain : every_format()) {
      const std::size_t item = itemsize(chain.dtype());
      EXPECT_EQ(run(kernel_, chain, scene, held), run(kernel_, chain, scene, held, item)) << scene.name;
    }
  }
}

TEST_P(FusedTest, WritesEveryElement) {
  const Scene scene = scenes()[1];
  for (const Compose& chain : every_format()) {
    const HeldPixels held(scene.plan.window, scene.seed);
    GuardedOutput zeros(chain, scene.plan), ones(chain, scene.plan);
    std::memset(zeros.view.data, 0, zeros.view.nbytes());
    std::memset(ones.view.data, 0xFF, ones.view.nbytes());
    kernel_.run(chain, scene.plan, held.pixels, zeros.view);
    kernel_.run(chain, scene.plan, held.pixels, ones.view);
    EXPECT_EQ(zeros.bytes(), ones.bytes());
  }
}

TEST_P(FusedTest, KeepsWhiteWhiteAndBlackBlack) {
  for (const Scene& scene : scenes()) {
    if (scene.name.starts_with("padd") || scene.name == "copy, padded") continue;
    for (const int level : {0, 255}) {
      const HeldPixels held(scene.plan.window, [&](int, int, int) { return static_cast<std::uint8_t>(level); });
      GuardedOutput out(kFloatHWC, scene.plan);
      kernel_.run(kFloatHWC, scene.plan, held.pixels, out.view);
      for (const float value : out.values<float>()) ASSERT_EQ(value, level == 0 ? 0.0F : 1.0F) << scene.name;
    }
  }
}

TEST_P(FusedTest, NormalizesEachChannel) {
  const Compose plain{to_dtype(DType::kFloat32)}, normalized{normalize({0.1, 0.2, 0.3}, {0.5, 0.6, 0.7})};
  const Scene scene = scenes()[1];
  const auto before = values<float>(run(kernel_, plain, scene)), after = values<float>(run(kernel_, normalized, scene));
  const std::size_t plane = before.size() / 3;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const float c = static_cast<float>(i / plane);
    ASSERT_NEAR(after[i], (before[i] - (0.1F + 0.1F * c)) / (0.5F + 0.1F * c), 1e-6F);
  }
}

TEST_P(FusedTest, NormalizesThePaddingAsZeros) {
  PlanBuilder plan(4, 4);
  plan.resize(8, 8);
  plan.center_crop({20, 20});
  const Scene scene{"pad", 0, plan.finish()};
  const auto out = values<float>(run(kernel_, Compose{normalize({0.5, 0.5, 0.5}, {0.25, 0.25, 0.25})}, scene));
  for (const std::size_t corner : {0, 19, 380, 399, 400, 1199}) EXPECT_EQ(out[corner], -2.0F);
}

TEST_P(FusedTest, RoundsSmallFloatsToNearestEven) {
  for (const Scene& scene : scenes()) {
    const auto f32 = values<float>(run(kernel_, Compose{normalize()}, scene));
    const auto f16 = values<std::uint16_t>(run(kernel_, Compose{normalize(), to_dtype(DType::kFloat16)}, scene));
    const auto bf16 = values<std::uint16_t>(run(kernel_, Compose{normalize(), to_dtype(DType::kBFloat16)}, scene));
    for (std::size_t i = 0; i < f32.size(); ++i) {
      ASSERT_EQ(f16[i], float_to_float16_portable(f32[i])) << scene.name;
      ASSERT_EQ(bf16[i], float_to_bfloat16(f32[i])) << scene.name;
    }
  }
}

TEST_P(FusedTest, OverflowsFloat16ToInfinity) {
  const Compose chain{normalize({0, 0, 0}, {1e-6, 1e-6, 1e-6}), to_dtype(DType::kFloat16)};
  const HeldPixels white({.x = 0, .y = 0, .width = 3, .height = 3}, [](int, int, int) { return std::uint8_t{255}; });
  const FusedPlan plan = PlanBuilder(3, 3).finish();
  GuardedOutput out(chain, plan);
  kernel_.run(chain, plan, white.pixels, out.view);
  for (const std::uint16_t bits : out.values<std::uint16_t>()) EXPECT_EQ(bits, 0x7C00);
}

TEST_P(FusedTest, MirrorsBitForBit) {
  for (Scene scene : scenes()) {
    const auto plain = values<float>(run(kernel_, Compose{normalize()}, scene));
    scene.plan.flip = !scene.plan.flip;
    const auto flipped = values<float>(run(kernel_, Compose{normalize()}, scene));
    const auto width = static_cast<std::size_t>(scene.plan.out_width);
    for (std::size_t i = 0; i < plain.size(); ++i)
      ASSERT_EQ(plain[i], flipped[i / width * width + width - 1 - i % width]) << scene.name;
  }
}

TEST_P(FusedTest, KeepsNothingFromOneRunToTheNext) {
  const auto all = scenes();
  for (const Scene& scene : all) {
    FusedKernel fresh(GetParam());
    const auto expected = run(fresh, kFloatHWC, scene);
    run(kernel_, kFloatHWC, all[7]);
    EXPECT_EQ(run(kernel_, kFloatHWC, scene), expected) << scene.name;
    EXPECT_EQ(run(kernel_, kFloatHWC, scene), expected) << scene.name;
  }
}

// A ramp looks the same at half the size: pixel x of the half is the mean of 2x and 2x + 1.
TEST_P(FusedTest, MapsAScaledDecodeToTheSamePlace) {
  PlanBuilder builder(240, 200);
  builder.crop(21, 13, 180, 160);
  builder.resize(50, 40);
  const FusedPlan plan = builder.finish();
  const HeldPixels full(plan.window, [](int x, int, int) { return static_cast<std::uint8_t>(x); });
  HeldPixels half({.x = 10, .y = 6, .width = 91, .height = 81},
                  [](int x, int, int) { return static_cast<std::uint8_t>(2 * x); });
  half.pixels.scale_num = 4;
  GuardedOutput a(kFloatHWC, plan), b(kFloatHWC, plan);
  kernel_.run(kFloatHWC, plan, full.pixels, a.view);
  kernel_.run(kFloatHWC, plan, half.pixels, b.view);
  const auto from_full = a.values<float>(), from_half = b.values<float>();
  for (std::size_t i = 0; i < from_full.size(); ++i) ASSERT_NEAR(from_full[i] * 255, from_half[i] * 255 + 0.5, 0.6);
}

TEST_P(FusedTest, RefusesAnotherResultThanTheChainMakes) {
  const Scene scene = scenes()[0];
  const HeldPixels held(scene.plan.window, 0);
  std::vector<float> memory(48 * 32 * 3);
  const auto refused = [&](const ArrayView& out) {
    EXPECT_THROW(kernel_.run(kFloatHWC, scene.plan, held.pixels, out), ConfigError);
  };
  refused(ArrayView(memory.data(), DType::kFloat16, Shape{32, 48, 3}));
  refused(ArrayView(memory.data(), DType::kFloat32, Shape{3, 32, 48}));
  refused(ArrayView(nullptr, DType::kFloat32, Shape{32, 48, 3}));
}

TEST_P(FusedTest, RefusesPixelsThatDoNotCoverTheWindow) {
  const Scene scene = scenes()[0];
  Window window = scene.plan.window;
  window.width -= 1;
  const HeldPixels held(window, 0);
  GuardedOutput out(kFloatHWC, scene.plan);
  EXPECT_THROW(kernel_.run(kFloatHWC, scene.plan, held.pixels, out.view), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Levels, FusedTest, ::testing::ValuesIn(cpu_levels()),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST(FusedKernelTest, RunsInManyThreadsWithOneKernelEach) {
  const Scene scene = scenes()[2];
  FusedKernel kernel;
  const auto expected = run(kernel, kFloatHWC, scene);
  std::vector<std::vector<std::byte>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results)
      threads.emplace_back([&] {
        FusedKernel own;
        result = run(own, kFloatHWC, scene);
      });
  }
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(CpuLevelTest, IsLoweredByName) {
  EXPECT_EQ(parse_cpu_level("portable"), CpuLevel::kPortable);
  EXPECT_EQ(parse_cpu_level(""), best_cpu_level());
  EXPECT_EQ(parse_cpu_level(to_string(best_cpu_level())), best_cpu_level());
}

TEST(CpuLevelTest, RefusesUnknownNames) { EXPECT_THROW((void)parse_cpu_level("sse9"), ConfigError); }

}  // namespace
}  // namespace infeed::testing

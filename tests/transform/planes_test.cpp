// The pass from planes: against exact arithmetic, the portable kernels, and itself with more of the picture held.

#include "transform/planes.h"

#include <cmath>

#include "infeed/base/error.h"

namespace infeed::testing {
namespace {

constexpr double kTolerance = 0.1;  // levels, from exact arithmetic on the same samples
const Compose kFloatHWC{to_dtype(DType::kFloat32), to_layout(ImageLayout::kHWC)};

struct PlaneScene {
  std::string name;
  int width = 0, height = 0, spread_x = 1, spread_y = 1, seed = 0, num_planes = 3;
  FusedPlan plan;

  [[nodiscard]] HeldPlanes window() const { return held(plan.window); }
  [[nodiscard]] HeldPlanes whole() const { return held({0, 0, width, height}); }
  [[nodiscard]] HeldPlanes held(const Window& part) const {
    return {width, height, part, spread_x, spread_y, seed, num_planes};
  }
};

/// Any size, sampling, crop, padding, resize and flip.
PlaneScene random_scene(int seed) {
  Philox rng(12, 0, static_cast<std::uint64_t>(seed));
  const auto side = [&](int most) { return 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(most))); };
  PlaneScene scene{"random " + std::to_string(seed), side(90), side(90), side(2), side(2), seed};
  if (rng.bernoulli(0.1)) scene.num_planes = 1;
  PlanBuilder plan(scene.width, scene.height);
  if (rng.bernoulli(0.2)) plan.center_crop({side(120), side(120)});
  if (rng.bernoulli(0.5)) plan.flip();
  if (rng.bernoulli(0.5)) plan.crop(plan.width() / 3, plan.height() / 4, side(plan.width()), side(plan.height()));
  if (rng.bernoulli(0.8)) plan.resize(side(70), side(70));
  if (rng.bernoulli(0.3)) plan.center_crop({side(80), side(80)});
  scene.plan = plan.finish();
  return scene;
}

PlaneScene photo(int spread_x, int spread_y, int num_planes = 3) {
  PlanBuilder plan(501, 375);
  plan.crop(31, 9, 253, 300), plan.resize(224, 224), plan.flip();
  return {"photo", 501, 375, spread_x, spread_y, 3, num_planes, plan.finish()};
}

PlaneScene shrunk(int width, int height, int to_width, int to_height) {
  PlanBuilder plan(width, height);
  plan.resize(to_width, to_height);
  return {"shrunk", width, height, 2, 2, 6, 3, plan.finish()};
}

std::vector<PlaneScene> scenes() {
  std::vector<PlaneScene> all{photo(1, 1), photo(2, 1), photo(1, 2), photo(2, 2), photo(1, 1, 1)};
  all.push_back(shrunk(900, 641, 45, 32));
  all.push_back(shrunk(6203, 11, 31, 9));
  all.push_back(shrunk(2001, 1203, 5, 3));
  all.push_back(shrunk(1, 1, 19, 5));
  for (int seed = 0; seed < 200; ++seed) all.push_back(random_scene(seed));
  return all;
}

std::vector<std::byte> run(FusedKernel& kernel, const Compose& chain, const PlaneScene& scene, const HeldPlanes& held) {
  GuardedOutput out(chain, scene.plan);
  kernel.run(chain, scene.plan, held.planes, out.view);
  EXPECT_TRUE(out.guards_intact()) << scene.name;
  return out.bytes();
}

std::vector<Compose> formats() {
  std::vector<Compose> all;
  for (const ImageLayout layout : {ImageLayout::kCHW, ImageLayout::kHWC})
    for (const DType dtype : {DType::kUInt8, DType::kFloat16, DType::kBFloat16, DType::kFloat32})
      all.push_back(dtype == DType::kUInt8 ? Compose{to_layout(layout)}
                                           : Compose{normalize(), to_dtype(dtype), to_layout(layout)});
  return all;
}

std::array<double, 3> rgb_of(double y, double cb, double cr) {
  const std::array<double, 3> rgb{y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb};
  return {std::clamp(rgb[0], 0.0, 255.0), std::clamp(rgb[1], 0.0, 255.0), std::clamp(rgb[2], 0.0, 255.0)};
}

double worst_error(const PlaneScene& scene, const HeldPlanes& held, const std::vector<float>& hwc) {
  const SpreadSample samples(held.planes, scene.seed);
  const bool gray = scene.num_planes == 1;
  const Reference exact(scene.plan, [&](int x, int y, int c) {
    return c == 0 ? samples.at(x, y, 0) : gray ? 0 : samples.at(x, y, c) - 128;
  });
  double worst = 0;
  for (std::size_t i = 0; i < hwc.size(); i += 3) {
    const int x = static_cast<int>(i / 3) % scene.plan.out_width, y = static_cast<int>(i / 3) / scene.plan.out_width;
    const auto rgb = rgb_of(exact.at(x, y, 0), exact.at(x, y, 1), exact.at(x, y, 2));
    for (std::size_t c = 0; c < 3; ++c) worst = std::max(worst, std::abs(hwc[i + c] * 255.0 - rgb[c]));
  }
  return worst;
}

class PlanesTest : public ::testing::TestWithParam<CpuLevel> {
 protected:
  FusedKernel kernel_{GetParam()};
};

TEST_P(PlanesTest, IsWithinAFractionOfALevelOfExactArithmetic) {
  for (const PlaneScene& scene : scenes()) {
    const HeldPlanes held = scene.window();
    GuardedOutput out(kFloatHWC, scene.plan);
    kernel_.run(kFloatHWC, scene.plan, held.planes, out.view);
    EXPECT_LE(worst_error(scene, held, out.values<float>()), kTolerance) << scene.name;
  }
}

TEST_P(PlanesTest, MakesTheBitsOfThePortableKernels) {
  if (GetParam() == CpuLevel::kPortable) GTEST_SKIP() << "they are compared with themselves";
  FusedKernel portable(CpuLevel::kPortable);
  for (const PlaneScene& scene : scenes()) {
    const HeldPlanes held = scene.window();
    for (const Compose& chain : formats())
      EXPECT_EQ(run(kernel_, chain, scene, held), run(portable, chain, scene, held))
          << scene.name << chain.to_state().to_json();
  }
}

TEST_P(PlanesTest, MakesTheSameBitsOfAWindowAndOfTheWholePicture) {
  for (const PlaneScene& scene : scenes())
    EXPECT_EQ(run(kernel_, kFloatHWC, scene, scene.window()), run(kernel_, kFloatHWC, scene, scene.whole()))
        << scene.name;
}

TEST_P(PlanesTest, MakesOfGrayTheBitsOfItsPixels) {
  const PlaneScene scene = photo(1, 1, 1);
  const HeldPixels pixels(scene.plan.window, [&](int x, int y, int) { return pixel(x, y, 0, scene.seed); });
  for (const Compose& chain : formats()) {
    GuardedOutput out(chain, scene.plan);
    kernel_.run(chain, scene.plan, pixels.pixels, out.view);
    EXPECT_EQ(run(kernel_, chain, scene, scene.window()), out.bytes());
  }
}

TEST_P(PlanesTest, LeavesPaddingBlack) {
  PlanBuilder plan(9, 7);
  plan.resize(8, 8), plan.center_crop({20, 20});
  const PlaneScene scene{"pad", 9, 7, 2, 2, 0, 3, plan.finish()};
  GuardedOutput out(kFloatHWC, scene.plan);
  kernel_.run(kFloatHWC, scene.plan, scene.window().planes, out.view);
  const auto values = out.values<float>();
  for (const std::size_t corner : {0, 1, 2, 57, 59, 1140, 1199}) EXPECT_EQ(values[corner], 0.0F);
}

TEST_P(PlanesTest, RefusesPlanesThatDoNotCoverTheWindow) {
  const PlaneScene scene = photo(2, 2);
  Window part = scene.plan.window;
  part.width -= 1;
  const HeldPlanes held = scene.held(part);
  GuardedOutput out(kFloatHWC, scene.plan);
  EXPECT_THROW(kernel_.run(kFloatHWC, scene.plan, held.planes, out.view), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Levels, PlanesTest, ::testing::ValuesIn(cpu_levels()),
                         [](const auto& level) { return std::string(to_string(level.param)); });

}  // namespace
}  // namespace infeed::testing

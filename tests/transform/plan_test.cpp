#include "transform/plan.h"

#include <cmath>

#include "infeed/base/error.h"

namespace infeed {
namespace {

Philox rng_of(int index) { return {42, 0, static_cast<std::uint64_t>(index)}; }

FusedPlan plan_of(const Compose& chain, int width, int height, int index = 0) {
  return plan_sample(chain, width, height, rng_of(index));
}

bool same(const FusedPlan& a, const FusedPlan& b) {
  return a.horizontal == b.horizontal && a.vertical == b.vertical && a.flip == b.flip;
}

TEST(ResizeTest, RoundsTheLongSideDownAsTorchvision) {
  const FusedPlan wide = plan_of({resize(256)}, 500, 375), tall = plan_of({resize(256)}, 375, 500);
  EXPECT_EQ(wide.out_width, 341);  // 341.33
  EXPECT_EQ(wide.out_height, 256);
  EXPECT_EQ(tall.out_width, 256);
  EXPECT_EQ(tall.out_height, 341);
}

TEST(ResizeTest, TakesAnExactSizeAsHeightAndWidth) {
  const FusedPlan plan = plan_of({resize(20, 30)}, 500, 375);
  EXPECT_EQ(plan.out_height, 20);
  EXPECT_EQ(plan.out_width, 30);
}

TEST(ResizeTest, RefusesAnUnaddressablePicture) {
  EXPECT_THROW((void)plan_of({resize(60'000)}, 65'000, 1), ConfigError);
  EXPECT_THROW((void)plan_of({resize(10)}, 0, 5), ConfigError);
}

TEST(CenterCropTest, RoundsHalvesToEvenAsPython) {
  EXPECT_EQ(plan_of({center_crop(28)}, 101, 103).horizontal.out.begin, 36);  // 36.5
  EXPECT_EQ(plan_of({center_crop(28)}, 101, 103).vertical.out.begin, 38);    // 37.5
}

TEST(CenterCropTest, PadsMoreOnTheRightWhereUneven) {
  const AxisPlan axis = plan_of({center_crop(28)}, 21, 21).horizontal;
  EXPECT_EQ(axis.out, (GridRange{.begin = -3, .size = 28, .valid_begin = 0, .valid_end = 21}));
}

TEST(WindowTest, IsTheCropWhereTheCropComesFirst) {
  for (int i = 0; i < 100; ++i) {
    const FusedPlan plan = plan_of({random_resized_crop(224)}, 500, 375, i);
    EXPECT_EQ(plan.window.x, plan.horizontal.source.begin);
    EXPECT_EQ(plan.window.width, plan.horizontal.source.size);
    EXPECT_EQ(plan.window.y, plan.vertical.source.begin);
    EXPECT_EQ(plan.window.height, plan.vertical.source.size);
  }
}

TEST(WindowTest, AddsTheFilterSupportWhereTheResizeComesFirst) {
  const Window window = plan_of({resize(256), center_crop(224)}, 500, 375).window;
  const double scale = 375 / 256.0;  // rows 16 .. 239 of 256, one and a half pixels round them
  EXPECT_EQ(window.y, static_cast<int>(16.5 * scale - scale + 0.5));
  EXPECT_EQ(window.y + window.height, static_cast<int>(239.5 * scale + scale + 0.5));
  EXPECT_GT(window.x, 0);
  EXPECT_LT(window.width, 500 - 2 * window.x + 4);
}

TEST(WindowTest, IsExactWhereNothingIsResampled) {
  const Window window = plan_of({center_crop(30)}, 50, 60).window;
  EXPECT_EQ(window.x, 10);
  EXPECT_EQ(window.y, 15);
  EXPECT_EQ(window.width, 30);
  EXPECT_EQ(window.height, 30);
}

TEST(WindowTest, StaysWithinThePicture) {
  const Compose chain{center_crop(400), random_resized_crop(64), center_crop(80)};
  for (int i = 0; i < 500; ++i) {
    const Window window = plan_of(chain, 1 + i % 13, 1 + i % 7, i).window;
    ASSERT_GE(window.x, 0);
    ASSERT_GE(window.y, 0);
    ASSERT_GE(window.width, 1);
    ASSERT_GE(window.height, 1);
    ASSERT_LE(window.x + window.width, 1 + i % 13);
    ASSERT_LE(window.y + window.height, 1 + i % 7);
  }
}

TEST(FlipTest, MirrorsTheCropsThatFollow) {
  PlanBuilder plan(100, 10);
  plan.flip();
  plan.crop(5, 0, 20, 10);
  EXPECT_EQ(plan.finish().horizontal.out.begin, 75);
  EXPECT_TRUE(plan.finish().flip);
}

TEST(FlipTest, HappensAsOftenAsItsProbability) {
  int flips = 0;
  for (int i = 0; i < 20'000; ++i) flips += plan_of({random_horizontal_flip(0.3)}, 10, 10, i).flip;
  EXPECT_NEAR(flips / 20'000.0, 0.3, 0.015);
}

TEST(RandomResizedCropTest, DrawsAreaAndLogRatioUniformly) {
  const Compose chain{RandomResizedCrop{.height = 8, .width = 8, .scale = {0.1, 0.3}, .ratio = {0.75, 4 / 3.0}}};
  double area = 0, area_squared = 0, log_ratio = 0, log_ratio_squared = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const FusedPlan plan = plan_of(chain, 1000, 1000, i);
    const double w = plan.horizontal.source.size, h = plan.vertical.source.size;
    area += w * h / 1e6 / kDraws, area_squared += w * w * h * h / 1e12 / kDraws;
    log_ratio += std::log(w / h) / kDraws, log_ratio_squared += std::pow(std::log(w / h), 2) / kDraws;
  }
  const double ratio_width = 2 * std::log(4 / 3.0);
  EXPECT_NEAR(area, 0.2, 0.002);
  EXPECT_NEAR(area_squared - area * area, 0.04 / 12, 1e-4);
  EXPECT_NEAR(log_ratio, 0, 0.005);
  EXPECT_NEAR(log_ratio_squared, ratio_width * ratio_width / 12, 0.001);
}

TEST(RandomResizedCropTest, PlacesTheCropUniformly) {
  const Compose chain{RandomResizedCrop{.height = 8, .width = 8, .scale = {0.25, 0.25}, .ratio = {1, 1}}};
  std::vector<int> lefts(51);
  for (int i = 0; i < 51'000; ++i)
    ++lefts.at(static_cast<std::size_t>(plan_of(chain, 100, 100, i).horizontal.source.begin));
  for (const int count : lefts) EXPECT_NEAR(count, 1000, 160);
}

TEST(RandomResizedCropTest, FallsBackToTheCenterWithinTheRatio) {
  const FusedPlan wide = plan_of({random_resized_crop(8)}, 1000, 10),
                  tall = plan_of({random_resized_crop(8)}, 10, 1000);
  EXPECT_EQ(wide.window.width, 13);
  EXPECT_EQ(wide.window.x, 493);
  EXPECT_EQ(wide.window.height, 10);
  EXPECT_EQ(tall.window.height, 13);
  EXPECT_EQ(tall.window.y, 493);
}

TEST(RandomResizedCropTest, FallsBackToTheWholeWhereItsRatioFits) {
  const Compose chain{RandomResizedCrop{.height = 8, .width = 8, .scale = {2, 3}}};
  EXPECT_EQ(plan_of(chain, 100, 90).window.width, 100);
  EXPECT_EQ(plan_of(chain, 100, 90).window.height, 90);
}

TEST(PlanSampleTest, DependsOnChainSizeAndGeneratorOnly) {
  const Compose chain{random_resized_crop(224), random_horizontal_flip()};
  EXPECT_TRUE(same(plan_of(chain, 500, 375, 3), plan_of(chain, 500, 375, 3)));
  EXPECT_FALSE(same(plan_of(chain, 500, 375, 3), plan_of(chain, 500, 375, 4)));
}

TEST(PlanSampleTest, DrawsTheFlipFromTheSamePlaceWhateverTheCropCameTo) {
  const Compose chain{random_resized_crop(224), random_horizontal_flip()};
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(plan_of(chain, 500, 375, i).flip, plan_of(chain, 1000, 3, i).flip) << "sample " << i;
}

}  // namespace
}  // namespace infeed

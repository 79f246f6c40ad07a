// Decoding and resizing planes against exact pixels: how far, for which files, and which files are left.

#include <gtest/gtest.h>

#include <cmath>

#include "decode/decoder.h"
#include "decode/jpeg_maker.h"
#include "transform/picture.h"

namespace infeed::testing {
namespace {

const Compose kChain{random_resized_crop(96), random_horizontal_flip(), to_dtype(DType::kFloat32)};

/// A drawing whose colours stay so far from 0 and 255 that no pixel clips on its way.
Bytes soft_jpeg(JpegRecipe recipe) {
  std::vector<std::uint8_t> rgb = draw(recipe.width, recipe.height, recipe.grain, recipe.seed);
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(80 + value * 3 / 8);
  return make_jpeg(recipe, rgb);
}

struct Difference {
  double mean = 0, worst = 0;  // levels
  bool by_planes = false;
};

Difference difference(const Bytes& file, std::uint64_t index) {
  Decoder decoder;
  FusedKernel kernel;
  const ImageInfo info = decoder.open(file, {});
  const FusedPlan plan = plan_sample(kChain, info.width, info.height, Philox(5, 0, index));
  GuardedOutput exact(kChain, plan), fast(kChain, plan);
  Difference result;
  if (const auto planes = decoder.decode_planes(plan.window)) {
    kernel.run(kChain, plan, *planes, fast.view);
    result.by_planes = true;
  }
  kernel.run(kChain, plan, decoder.decode(plan.window, plan.out_width, plan.out_height), exact.view);
  const auto a = exact.values<float>(), b = fast.values<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double levels = 255 * std::abs(a[i] - b[i]);
    result.mean += levels / static_cast<double>(a.size());
    result.worst = std::max(result.worst, levels);
  }
  return result;
}

TEST(PlanesErrorTest, IsAThirdOfALevelWhereNoColourClips) {
  double mean = 0;
  for (const Sampling luma : {Sampling{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
    for (std::uint64_t i = 0; i < 12; ++i) {
      const int width = 300 + static_cast<int>(i) * 17, height = 260 - static_cast<int>(i) * 9;
      const JpegRecipe recipe{.width = width, .height = height, .sampling = {luma}, .quality = 90, .seed = i};
      const Difference found = difference(soft_jpeg(recipe), i);
      EXPECT_TRUE(found.by_planes && found.mean <= 0.35 && found.worst <= 2) << to_string(recipe) << found.mean;
      mean += found.mean / 48;
    }
  }
  EXPECT_LE(mean, 0.3);
}

TEST(PlanesErrorTest, IsNoneForGray) {
  const JpegRecipe recipe{.width = 211, .height = 139, .color = JpegColor::kGray};
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(difference(make_jpeg(recipe), i).worst, 0);
}

TEST(PlanesErrorTest, StaysSmallWhereColoursClip) {
  const Difference found = difference(make_jpeg({.width = 400, .height = 300, .sampling = {Sampling{2, 2}}}), 1);
  EXPECT_LE(found.mean, 0.6);
}

TEST(PlanesErrorTest, LeavesOtherFilesToTheExactPath) {
  const auto by_planes = [](const Bytes& file) {
    Decoder decoder;
    const ImageInfo info = decoder.open(file, {});
    return decoder.decode_planes({0, 0, info.width, info.height}).has_value();
  };
  EXPECT_TRUE(by_planes(make_jpeg({.sampling = {Sampling{2, 2}}})));
  for (const JpegRecipe& recipe :
       {JpegRecipe{.progressive = true}, JpegRecipe{.color = JpegColor::kRGB}, JpegRecipe{.color = JpegColor::kCMYK},
        JpegRecipe{.sampling = {Sampling{4, 1}}}, JpegRecipe{.width = 4, .sampling = {Sampling{2, 2}}}})
    EXPECT_FALSE(by_planes(make_jpeg(recipe))) << to_string(recipe);
  EXPECT_FALSE(by_planes(with_exif(make_jpeg({}), {.orientation = 6})));
}

TEST(PlanesErrorTest, AreTheSameWithAnIndexOfRows) {
  const Bytes file = make_jpeg({.width = 333, .height = 300, .sampling = {Sampling{2, 2}}});
  RowIndex index;
  Decoder plain, indexed;
  FusedKernel kernel;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const FusedPlan plan = plan_sample(kChain, 333, 300, Philox(9, 0, i));
    GuardedOutput a(kChain, plan), b(kChain, plan);
    plain.open(file, {});
    kernel.run(kChain, plan, *plain.decode_planes(plan.window), a.view);
    indexed.open(file, {});
    indexed.use_index(index);
    kernel.run(kChain, plan, *indexed.decode_planes(plan.window), b.view);
    EXPECT_EQ(a.bytes(), b.bytes()) << i;
  }
  EXPECT_FALSE(index.none || index.entries.empty());
}

TEST(PlanesErrorTest, LeavesDamagedFilesWithTheirErrors) {
  const Bytes whole = make_jpeg({.width = 200, .height = 200, .sampling = {Sampling{2, 2}}});
  Decoder decoder;
  decoder.open(whole, {});
  const Bytes cut = first_bytes(whole, whole.size() / 2);
  decoder.open(cut, {});
  EXPECT_FALSE(decoder.decode_planes({0, 0, 200, 200}));
  EXPECT_THROW(static_cast<void>(decoder.decode({0, 0, 200, 200}, 64, 64)), DecodeError);
}

}  // namespace
}  // namespace infeed::testing

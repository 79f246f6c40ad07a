#include "infeed/transform/compose.h"

#include <cmath>

#include "infeed/base/error.h"

namespace infeed {
namespace {

std::string error_of(const std::vector<ImageOp>& ops) {
  try {
    Compose chain(ops);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_error(const std::vector<ImageOp>& ops, const std::vector<std::string>& parts) {
  const std::string error = error_of(ops);
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << "\"" << error << "\" lacks " << part;
}

TEST(ComposeTest, DefaultsToBytesInPlanes) {
  const Compose chain;
  EXPECT_EQ(chain.dtype(), DType::kUInt8);
  EXPECT_EQ(chain.layout(), ImageLayout::kCHW);
  EXPECT_EQ(chain.output_shape(), (Shape{3, -1, -1}));
}

TEST(ComposeTest, NormalizesToFloat32UnlessToldOtherwise) {
  EXPECT_EQ(Compose({normalize()}).dtype(), DType::kFloat32);
  EXPECT_EQ(Compose({normalize(), to_dtype(DType::kFloat16)}).dtype(), DType::kFloat16);
  EXPECT_EQ(Compose({to_dtype(DType::kBFloat16), normalize()}).dtype(), DType::kBFloat16);
}

TEST(ComposeTest, KnowsTheShapeWhereTheChainFixesIt) {
  EXPECT_EQ(Compose({RandomResizedCrop{.height = 7, .width = 9}}).output_shape(), (Shape{3, 7, 9}));
  EXPECT_EQ(Compose({resize(7, 9), to_layout(ImageLayout::kHWC)}).output_shape(), (Shape{7, 9, 3}));
  EXPECT_EQ(Compose({resize(256)}).output_shape(), (Shape{3, -1, -1}));
  EXPECT_EQ(Compose({resize(256), center_crop(224)}).output_shape(), (Shape{3, 224, 224}));
  EXPECT_EQ(Compose({center_crop(100), resize(50)}).output_shape(), (Shape{3, 50, 50}));
}

TEST(ComposeTest, RefusesASecondResampling) {
  expect_error({resize(256), random_resized_crop(224)},
               {"RandomResizedCrop(height=224", "Resize(height=256", "Drop one"});
}

TEST(ComposeTest, RefusesGeometryBehindConversion) {
  expect_error({normalize(), center_crop(5)}, {"CenterCrop(height=5", "behind Normalize"});
  expect_error({to_dtype(DType::kFloat32), random_horizontal_flip()},
               {"RandomHorizontalFlip", "behind ToDType(float32)"});
}

TEST(ComposeTest, RefusesAConversionTwice) {
  expect_error({normalize(), normalize()}, {"has Normalize", "already"});
  expect_error({to_dtype(DType::kUInt8), to_dtype(DType::kFloat16)}, {"ToDType(float16)", "ToDType(uint8) already"});
  expect_error({to_layout(ImageLayout::kHWC), to_layout(ImageLayout::kHWC)}, {"ToLayout(HWC)"});
}

TEST(ComposeTest, RefusesNormalizedBytes) {
  expect_error({normalize(), to_dtype(DType::kUInt8)}, {"uint8 cannot hold", "floating"});
}

TEST(ComposeTest, RefusesValuesThatMakeNoSense) {
  expect_error({resize(0)}, {"Resize(height=0", "height 0 is outside 1"});
  expect_error({resize(5, -1)}, {"width -1"});
  expect_error({center_crop(70'000)}, {"70000 is outside"});
  expect_error({RandomResizedCrop{.scale = {0.5, 0.1}}}, {"scale=[0.5, 0.1]", "smaller first"});
  expect_error({RandomResizedCrop{.ratio = {0, 1}}}, {"ratio must be"});
  expect_error({random_horizontal_flip(1.5)}, {"p=1.5", "probability"});
  expect_error({random_horizontal_flip(std::nan(""))}, {"probability"});
  expect_error({normalize({0, 0, 0}, {1, 0, 1})}, {"std=[1, 0, 1]", "positive"});
  expect_error({normalize({0, 0, 0}, {1, 1, 1e-300})}, {"overflow"});
  expect_error({to_dtype(DType::kInt64)}, {"ToDType(int64)", "uint8, float16"});
}

TEST(ComposeTest, SurvivesTheRoundTripThroughState) {
  const Compose chain{center_crop(300),
                      RandomResizedCrop{.height = 3, .width = 4, .scale = {0.1, 0.7}, .ratio = {0.3, 3.1}},
                      random_horizontal_flip(0.25),
                      normalize({0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}),
                      to_dtype(DType::kBFloat16),
                      to_layout(ImageLayout::kHWC)};
  const Compose again = Compose::from_state(State::from_json(chain.to_state().to_json()));
  EXPECT_EQ(again.to_state(), chain.to_state());
  EXPECT_EQ(again.ops().size(), 6U);
  EXPECT_EQ(std::get<RandomResizedCrop>(again.ops()[1]).ratio[1], 3.1);
  EXPECT_EQ(again.dtype(), DType::kBFloat16);
  EXPECT_EQ(again.output_shape(), (Shape{3, 4, 3}));
}

TEST(ComposeTest, RefusesAStateOfAnotherVersion) {
  EXPECT_THROW((void)Compose::from_state(State::from_json(R"({"ops":[{"op":"Sharpen"}]})")), StateError);
  EXPECT_THROW((void)Compose::from_state(State::from_json(R"({"ops":[{"op":"Resize","height":-4,"width":0}]})")),
               StateError);
  EXPECT_THROW((void)Compose::from_state(State::from_json("{}")), StateError);
}

}  // namespace
}  // namespace infeed

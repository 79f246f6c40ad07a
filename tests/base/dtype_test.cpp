#include "infeed/base/dtype.h"

#include <gtest/gtest.h>

#include <string>

#include "infeed/base/error.h"

namespace infeed {
namespace {

TEST(DType, ReturnsFromItsName) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  }
}

TEST(DType, NamesTheKnownOnesForAnUnknown) {
  try {
    static_cast<void>(dtype_from_string("float8"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'float8'. Known: bool, uint8"), std::string::npos) << error.what();
  }
}

TEST(DType, KnowsTheSizesOfCppTypes) {
  EXPECT_EQ(itemsize(dtype_of<bool>), sizeof(bool));
  EXPECT_EQ(itemsize(dtype_of<std::int8_t>), 1U);
  EXPECT_EQ(itemsize(dtype_of<std::uint16_t>), 2U);
  EXPECT_EQ(itemsize(dtype_of<const float>), 4U);
  EXPECT_EQ(itemsize(dtype_of<double>), 8U);
  EXPECT_EQ(itemsize(DType::kBFloat16), 2U);
  EXPECT_EQ(dtype_of<long long>, DType::kInt64);
}

TEST(DType, TellsFloatsFromIntegers) {
  EXPECT_TRUE(is_floating_point(DType::kFloat16));
  EXPECT_TRUE(is_floating_point(DType::kFloat64));
  EXPECT_FALSE(is_floating_point(DType::kUInt64));
  EXPECT_FALSE(is_floating_point(DType::kBool));
}

TEST(DType, KeepsTheNumbersThatAreInFiles) {
  EXPECT_EQ(static_cast<int>(DType::kUInt8), 1);
  EXPECT_EQ(static_cast<int>(DType::kInt64), 7);
  EXPECT_EQ(static_cast<int>(DType::kFloat64), 12);
}

}  // namespace
}  // namespace infeed

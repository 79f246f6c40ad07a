#include "infeed/batch/schema.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"

namespace infeed {
namespace {

TEST(Schema, FindsFieldsByName) {
  const Schema schema{{"image", DType::kUInt8, {3, 4}}, {"label", DType::kInt64, {}}};
  EXPECT_EQ(schema.find("label"), 1U);
  EXPECT_EQ(schema.find("other"), std::nullopt);
  EXPECT_EQ(schema.row_bytes(), 20U);
  EXPECT_TRUE(schema.fixed());
}

TEST(Schema, IsNotFixedWithOneVariableDimension) {
  const Schema schema{{"tokens", DType::kInt32, {-1}}, {"label", DType::kInt64, {}}};
  EXPECT_FALSE(schema.fixed());
  EXPECT_EQ(schema.row_bytes(), 8U);
}

TEST(Schema, RefusesBadNames) {
  EXPECT_THROW((Schema{{"", DType::kInt8, {}}}), ConfigError);
  EXPECT_THROW((Schema{{std::string(64, 'x'), DType::kInt8, {}}}), ConfigError);
  EXPECT_THROW((Schema{{std::string("a\0b", 3), DType::kInt8, {}}}), ConfigError);
  EXPECT_THROW((Schema{{"x", DType::kInt8, {}}, {"x", DType::kInt16, {}}}), ConfigError);
  EXPECT_NO_THROW((Schema{{std::string(63, 'x'), DType::kInt8, {}}}));
}

TEST(Schema, RefusesImpossibleShapes) {
  EXPECT_THROW((Schema{{"x", DType::kInt8, {-2}}}), ConfigError);
  EXPECT_THROW((Schema{{"x", DType::kInt64, {1LL << 40, 1LL << 40}}}), ConfigError);
}

TEST(Schema, CrossesAsState) {
  const Schema schema{{"a", DType::kBFloat16, {2, -1}}, {"b", DType::kBool, {}}};
  EXPECT_EQ(Schema::from_state(State::from_json(schema.to_state().to_json())), schema);
}

}  // namespace
}  // namespace infeed

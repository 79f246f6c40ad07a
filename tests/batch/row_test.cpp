#include "infeed/batch/row.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"

namespace infeed {
namespace {

struct OneField final : VariableStore {
  std::vector<std::byte> bytes;
  std::byte* allocate(std::size_t /*field*/, const Shape& /*shape*/, std::size_t nbytes) override {
    bytes.resize(nbytes + 1);
    return bytes.data();
  }
};

class RowTest : public ::testing::Test {
 protected:
  Schema schema{{"label", DType::kInt64, {}}, {"boxes", DType::kFloat32, {-1, 4}}};
  std::int64_t label = 0;
  std::vector<ArrayView> views{ArrayView(&label, DType::kInt64, {}), ArrayView(nullptr, DType::kFloat32, {0})};
  OneField store;
  Row row{schema, views, {.seed = 1, .epoch = 2, .index = 3}, &store};
};

TEST_F(RowTest, WritesScalars) {
  row.set<std::int64_t>(0, 7);
  EXPECT_EQ(label, 7);
  EXPECT_THROW(row.set(0, 7.0), ConfigError);
}

TEST_F(RowTest, FindsFieldsByName) {
  EXPECT_EQ(row.at("label").data, row[0].data);
  EXPECT_THROW(static_cast<void>(row.at("other")), IndexError);
}

TEST_F(RowTest, GivesAVariableFieldItsSize) {
  const ArrayView& boxes = row.resize(1, {5, 4});
  EXPECT_EQ(boxes.shape, (Shape{5, 4}));
  EXPECT_EQ(boxes.data, store.bytes.data());
  EXPECT_EQ(store.bytes.size(), 81U);
  EXPECT_EQ(row[1].shape, boxes.shape);
}

TEST_F(RowTest, AllowsEmptyVariableFields) {
  EXPECT_EQ(row.resize(1, {0, 4}).numel(), 0);
  EXPECT_NE(row[1].data, nullptr);
}

TEST_F(RowTest, RefusesSizesThatTheSchemaFixesOtherwise) {
  EXPECT_THROW(row.resize(1, {5, 3}), ConfigError);
  EXPECT_THROW(row.resize(1, {5}), ConfigError);
  EXPECT_THROW(row.resize(1, {-1, 4}), ConfigError);
  EXPECT_THROW(row.resize(1, {std::int64_t{1} << 60, 4}), ConfigError);
  EXPECT_THROW(row.resize(0, {1}), ConfigError);
  EXPECT_THROW(row.resize(2, {1}), IndexError);
  EXPECT_NO_THROW(row.resize(0, {}));
}

TEST_F(RowTest, HasTheSameRandomStreamInEveryCall) {
  EXPECT_EQ(row.context().rng().next_u64(), row.context().rng().next_u64());
}

}  // namespace
}  // namespace infeed

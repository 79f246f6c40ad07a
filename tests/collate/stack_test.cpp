#include "infeed/collate/stack.h"

#include <gtest/gtest.h>

#include "collate/collated.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using testing::Collated;
using testing::Ints;
using testing::Values;

TEST(StackCollate, StacksFixedFields) {
  const Collated batch(StackCollate(), {2}, {{2}, {2}, {2}});
  EXPECT_EQ(batch.at("x").shape, (Shape{3, 2}));
  EXPECT_EQ(batch.x(), (Values{0, 1, 100, 101, 200, 201}));
  EXPECT_EQ(batch.ints("label"), (Ints{0, 1, 2}));
}

TEST(StackCollate, StacksVariableFieldsThatAgree) {
  EXPECT_EQ(Collated(StackCollate(), {-1, 2}, {{3, 2}, {3, 2}}).at("x").shape, (Shape{2, 3, 2}));
}

TEST(StackCollate, NamesTheRowThatDisagrees) {
  try {
    Collated(StackCollate(), {-1}, {{3}, {3}, {4}});
    FAIL() << "no error";
  } catch (const DataError& error) {
    const std::string text = error.what();
    for (const char* part : {"'x'", "row 2", "[4]", "[3]"}) EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(StackCollate, StacksRowsWithoutElements) {
  EXPECT_EQ(Collated(StackCollate(), {-1, 3}, {{0, 3}, {0, 3}}).at("x").shape, (Shape{2, 0, 3}));
}

TEST(StackCollate, MakesAnEmptyBatch) {
  const Collated batch(StackCollate(), {-1, 3}, {});
  EXPECT_EQ(batch.at("x").shape, (Shape{0, 0, 3}));
  EXPECT_EQ(batch.at("label").shape, (Shape{0}));
}

}  // namespace
}  // namespace infeed

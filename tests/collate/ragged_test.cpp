#include "infeed/collate/ragged.h"

#include <gtest/gtest.h>

#include "collate/collated.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using testing::Collated;
using testing::Ints;
using testing::Values;

TEST(RaggedCollate, JoinsRowsEndToEnd) {
  const Collated batch(RaggedCollate(), {-1}, {{2}, {0}, {3}});
  EXPECT_EQ(batch.x(), (Values{0, 1, 200, 201, 202}));
  EXPECT_EQ(batch.ints("x.offsets"), (Ints{0, 2, 2, 5}));
  EXPECT_EQ(batch.ints("label"), (Ints{0, 1, 2}));
}

TEST(RaggedCollate, JoinsRowsOfVectors) {
  const Collated batch(RaggedCollate(), {-1, 2}, {{1, 2}, {2, 2}});
  EXPECT_EQ(batch.at("x").shape, (Shape{3, 2}));
  EXPECT_EQ(batch.x(), (Values{0, 1, 100, 101, 102, 103}));
}

TEST(RaggedCollate, JoinsAlongAnInnerDimension) {
  const Collated batch(RaggedCollate(), {2, -1}, {{2, 1}, {2, 3}});
  EXPECT_EQ(batch.at("x").shape, (Shape{2, 4}));
  EXPECT_EQ(batch.x(), (Values{0, 100, 101, 102, 1, 103, 104, 105}));
  EXPECT_EQ(batch.ints("x.offsets"), (Ints{0, 1, 4}));
}

TEST(RaggedCollate, StacksFixedFieldsOnly) {
  EXPECT_EQ(Collated(RaggedCollate(), {2}, {{2}, {2}}).at("x").shape, (Shape{2, 2}));
}

TEST(RaggedCollate, AllowsASecondVariableDimensionThatAgrees) {
  EXPECT_EQ(Collated(RaggedCollate(), {-1, -1}, {{1, 3}, {2, 3}}).at("x").shape, (Shape{3, 3}));
  EXPECT_THROW(Collated(RaggedCollate(), {-1, -1}, {{1, 3}, {2, 4}}), DataError);
}

TEST(RaggedCollate, JoinsRowsWithoutElements) {
  const Collated batch(RaggedCollate(), {-1}, {{0}, {0}});
  EXPECT_EQ(batch.at("x").shape, (Shape{0}));
  EXPECT_EQ(batch.ints("x.offsets"), (Ints{0, 0, 0}));
}

TEST(RaggedCollate, MakesAnEmptyBatch) {
  const Collated batch(RaggedCollate(), {-1, 5}, {});
  EXPECT_EQ(batch.at("x").shape, (Shape{0, 5}));
  EXPECT_EQ(batch.ints("x.offsets"), (Ints{0}));
}

TEST(RaggedCollate, NamesTheOptionWhereTheExtentEnds) {
  EXPECT_THROW(Collated(RaggedCollate(), {-1}, {{100}, {20'000}}), MemoryError);
}

}  // namespace
}  // namespace infeed

#include "batch/writer.h"

#include <gtest/gtest.h>

#include "batch/reader.h"
#include "infeed/base/error.h"
#include "support/aligned.h"

namespace infeed {
namespace {

class BatchWriterTest : public ::testing::Test {
 protected:
  testing::AlignedBytes extent{kArraysBegin + 1024};
  BatchWriter writer{extent.span()};
};

TEST_F(BatchWriterTest, WhatItWritesIsRead) {
  writer.add("x", DType::kInt64, {3}).as<std::int64_t>()[2] = 42;
  writer.add("empty", DType::kFloat16, {0, 7});
  writer.add("scalar", DType::kBool, {});
  EXPECT_EQ(writer.finish(), kArraysBegin + 128 + 1);
  const auto arrays = read_batch(extent.span());
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(arrays[0].array.as<std::int64_t>()[2], 42);
  EXPECT_EQ(arrays[1].array.shape, (Shape{0, 7}));
  EXPECT_EQ(arrays[2].name, "scalar");
}

TEST_F(BatchWriterTest, ABatchWithoutArraysIsRead) {
  EXPECT_EQ(writer.finish(), kArraysBegin);
  EXPECT_TRUE(read_batch(extent.span()).empty());
}

TEST_F(BatchWriterTest, AnUnfinishedBatchIsNotRead) {
  static_cast<void>(writer.finish());
  BatchWriter second(extent.span());
  second.add("x", DType::kInt64, {3});
  EXPECT_THROW(static_cast<void>(read_batch(extent.span())), DataError);
}

TEST_F(BatchWriterTest, UsesTheExtentToItsLastByte) {
  EXPECT_NO_THROW(writer.add("x", DType::kUInt8, {1024}));
  EXPECT_EQ(writer.finish(), extent.size());
  EXPECT_EQ(read_batch(extent.span()).size(), 1U);
}

TEST_F(BatchWriterTest, NamesTheOptionWhereTheExtentEnds) {
  try {
    writer.add("x", DType::kUInt8, {1025});
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("extent_bytes"), std::string::npos) << error.what();
  }
  EXPECT_THROW(writer.add("y", DType::kFloat64, {1LL << 58}), MemoryError);
}

TEST_F(BatchWriterTest, RefusesBadNamesAndShapes) {
  writer.add("x", DType::kUInt8, {1});
  EXPECT_THROW(writer.add("x", DType::kUInt8, {1}), ConfigError);
  EXPECT_THROW(writer.add("", DType::kUInt8, {1}), ConfigError);
  EXPECT_THROW(writer.add(std::string(64, 'n'), DType::kUInt8, {1}), ConfigError);
  EXPECT_THROW(writer.add("y", DType::kUInt8, {-1}), ConfigError);
  EXPECT_THROW(writer.add("z", DType::kUInt8, {0, 1LL << 40, 1LL << 40}), ConfigError);
}

TEST_F(BatchWriterTest, RefusesMoreArraysThanItsTableHolds) {
  for (std::size_t i = 0; i < kMaxArrays; ++i) writer.add(std::to_string(i), DType::kUInt8, {0});
  EXPECT_THROW(writer.add("more", DType::kUInt8, {0}), ConfigError);
  static_cast<void>(writer.finish());
  EXPECT_EQ(read_batch(extent.span()).size(), kMaxArrays);
}

TEST(BatchWriter, RefusesAnExtentSmallerThanItsHeader) {
  testing::AlignedBytes tiny(128);
  EXPECT_THROW(BatchWriter(tiny.span()), MemoryError);
}

}  // namespace
}  // namespace infeed

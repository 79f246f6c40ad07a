#include "batch/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "batch/writer.h"
#include "infeed/base/error.h"
#include "support/aligned.h"

namespace infeed {
namespace {

/// A good batch of two arrays, to be damaged.
class BatchReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BatchWriter writer(extent.span());
    writer.add("a", DType::kInt32, {4, 2});
    writer.add("b", DType::kFloat32, {3});
    used = writer.finish();
  }
  BatchHeader& header() { return *reinterpret_cast<BatchHeader*>(extent.data()); }
  ArrayRecord& record(std::size_t i) { return reinterpret_cast<ArrayRecord*>(extent.data() + sizeof(BatchHeader))[i]; }
  void expect_refused() { EXPECT_THROW(static_cast<void>(read_batch(extent.span())), DataError); }
  testing::AlignedBytes extent{kArraysBegin + 4096};
  std::size_t used = 0;
};

TEST_F(BatchReaderTest, ReadsAGoodBatch) { EXPECT_EQ(read_batch(extent.span()).size(), 2U); }

TEST_F(BatchReaderTest, RefusesAnotherMagicOrVersion) {
  header().magic ^= 1;
  expect_refused();
  SetUp();
  ++header().version;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesSizesBeyondTheExtent) {
  header().used_bytes = extent.size() + 1;
  expect_refused();
  header().used_bytes = 64;
  expect_refused();
  header().used_bytes = ~std::uint64_t{0};
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesMoreArraysThanTheTableHolds) {
  header().num_arrays = kMaxArrays + 1;
  expect_refused();
  header().num_arrays = 0xffff;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesRecordsThatWereNeverWritten) {
  header().num_arrays = 3;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesBadNames) {
  std::memset(record(0).name, 'x', sizeof(record(0).name));
  expect_refused();
  record(0).name[0] = '\0';
  expect_refused();
  std::strcpy(record(0).name, "a\n");
  expect_refused();
  std::strcpy(record(0).name, "b");
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesUnknownDTypes) {
  record(1).dtype = kNumDTypes;
  expect_refused();
  record(1).dtype = 255;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesShapesThatDoNotMatchTheBytes) {
  record(0).shape[0] = 5;
  expect_refused();
  record(0).shape[0] = -4;
  expect_refused();
  record(0).shape[0] = std::int64_t{1} << 62;
  expect_refused();
  SetUp();
  record(0).ndim = 9;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesShapesWhoseStridesOverflow) {
  record(0).ndim = 3;
  record(0).nbytes = 0;
  record(0).shape[0] = 0;
  record(0).shape[1] = record(0).shape[2] = std::int64_t{1} << 40;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesArraysOutsideTheBatch) {
  record(1).offset = used + 128;
  expect_refused();
  record(1).offset = ~std::uint64_t{0} - 127;
  expect_refused();
  record(1).offset = 0;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesArraysThatOverlapOrAreNotAligned) {
  record(1).offset = record(0).offset;
  expect_refused();
  record(1).offset = record(0).offset + 64;
  expect_refused();
}

TEST_F(BatchReaderTest, RefusesAnExtentShorterThanAHeader) {
  EXPECT_THROW(static_cast<void>(read_batch(extent.span().first(100))), DataError);
  EXPECT_THROW(static_cast<void>(read_batch({})), DataError);
}

TEST_F(BatchReaderTest, SurvivesRandomDamage) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    SetUp();
    for (int i = 0; i < 3; ++i) extent.data()[random() % (64 + 320)] = static_cast<std::byte>(random());
    try {
      for (const NamedArray& named : read_batch(extent.span()))
        ASSERT_LE(named.array.data + named.array.nbytes(), extent.data() + extent.size());
    } catch (const DataError&) {
    }
  }
}

}  // namespace
}  // namespace infeed

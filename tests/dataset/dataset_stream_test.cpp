#include "infeed/dataset/dataset_stream.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/dataset/registry.h"
#include "infeed/dataset/synthetic.h"
#include "support/sample.h"

namespace infeed {
namespace {

using testing::read_sample;
using testing::read_shard;
using testing::Sample;

const Schema kSchema{{"index", DType::kInt64, {}}, {"tokens", DType::kInt32, {-1}}};

std::vector<std::int64_t> indices_of(const std::vector<Sample>& samples) {
  std::vector<std::int64_t> indices;
  for (const Sample& sample : samples) indices.push_back(sample[0].values<std::int64_t>()[0]);
  return indices;
}

class DatasetStreamTest : public ::testing::Test {
 protected:
  std::vector<Sample> shard(std::int64_t s, std::int64_t n) { return read_shard(*stream.open(0, s, n), kSchema); }
  std::shared_ptr<SyntheticDataset> dataset =
      std::make_shared<SyntheticDataset>(7, kSchema, SyntheticOptions{.augment = true});
  DatasetStream stream{dataset};
};

TEST_F(DatasetStreamTest, DealsTheIndicesOut) {
  EXPECT_EQ(indices_of(shard(0, 3)), (std::vector<std::int64_t>{0, 3, 6}));
  EXPECT_EQ(indices_of(shard(2, 3)), (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(stream.size(), 7);
}

TEST_F(DatasetStreamTest, LeavesShardsBeyondTheEndEmpty) {
  EXPECT_TRUE(shard(9, 10).empty());
  EXPECT_EQ(shard(6, 10).size(), 1U);
}

TEST_F(DatasetStreamTest, ReadsWhatTheDatasetReads) {
  const auto samples = shard(1, 2);
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(samples[i], read_sample(*dataset, static_cast<std::int64_t>(2 * i + 1), 1, 2));
}

TEST_F(DatasetStreamTest, SkipsWithoutReading) {
  const auto reader = stream.open(0, 0, 2);
  EXPECT_EQ(reader->skip(3), 3);
  EXPECT_EQ(indices_of(read_shard(*reader, kSchema)), (std::vector<std::int64_t>{6}));
  EXPECT_EQ(reader->skip(5), 0);
  EXPECT_EQ(stream.open(0, 0, 2)->skip(100), 4);
}

TEST_F(DatasetStreamTest, PassesOverASampleThatCannotBeRead) {
  const DatasetStream failing(std::make_shared<SyntheticDataset>(4, kSchema, SyntheticOptions{.fail_every = 2}));
  const auto reader = failing.open(0, 0, 1);
  EXPECT_EQ(reader->skip(1), 1);
  EXPECT_THROW(static_cast<void>(read_shard(*reader, kSchema)), DataError);
  EXPECT_EQ(reader->skip(100), 2);
}

TEST_F(DatasetStreamTest, IsMadeAgainFromItsSpec) {
  const auto spec = stream.spec().value();
  const auto again = Registry::builtin().make_stream({spec.name, State::from_json(spec.params.to_json()), {}});
  EXPECT_EQ(read_shard(*again->open(0, 1, 2), kSchema), shard(1, 2));
}

TEST_F(DatasetStreamTest, RefusesImpossibleShards) {
  EXPECT_THROW(static_cast<void>(stream.open(0, 2, 2)), ConfigError);
  EXPECT_THROW(static_cast<void>(stream.open(0, -1, 2)), ConfigError);
  EXPECT_THROW(static_cast<void>(stream.open(0, 0, 0)), ConfigError);
  EXPECT_THROW(DatasetStream(nullptr), ConfigError);
}

TEST(SyntheticStream, HoldsEachSampleOnceForAnyNumberOfShards) {
  const SyntheticStream stream(11, kSchema);
  for (const std::int64_t n : {1, 2, 5, 11, 20}) {
    std::vector<std::int64_t> all;
    for (std::int64_t s = 0; s < n; ++s) {
      for (const std::int64_t i : indices_of(read_shard(*stream.open(0, s, n), kSchema))) all.push_back(i);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})) << n;
  }
}

TEST(SyntheticStream, IsMadeAgainFromItsSpec) {
  const SyntheticStream stream(11, kSchema, {.seed = 3}, false);
  const auto again = Registry::builtin().make_stream(stream.spec().value());
  EXPECT_EQ(again->size(), std::nullopt);
  EXPECT_EQ(read_shard(*again->open(0, 0, 1), kSchema), read_shard(*stream.open(0, 0, 1), kSchema));
}

}  // namespace
}  // namespace infeed

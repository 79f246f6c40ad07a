#include <gtest/gtest.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"

namespace infeed {
namespace {

using testing::Crew;
using testing::rest_of_epoch;
using testing::rest_of_indices;

const SyntheticStream& stream() {
  static const SyntheticStream data(50, {{"x", DType::kFloat32, {4}}, {"index", DType::kInt64, {}}});
  return data;
}

LoaderOptions options(const Crew& crew, int shards) {
  return {.batch_size = 4, .num_workers = crew.workers, .worker_kind = crew.kind, .stream_shards = shards};
}

class StreamTest : public ::testing::TestWithParam<Crew> {};

TEST_P(StreamTest, YieldsEverySampleOnceInEachEpoch) {
  Loader loader(stream(), options(GetParam(), 3));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> seen;
    while (auto batch = loader.next()) {
      const auto* index = batch->at("index").as<std::int64_t>();
      seen.insert(seen.end(), index, index + batch->size());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, testing::iota(50));
  }
}

TEST_P(StreamTest, TheNumberOfShardsFixesTheBatchesNotTheWorkers) {
  Loader reference(stream(), options({}, 3));
  Loader loader(stream(), options(GetParam(), 3));
  EXPECT_EQ(rest_of_epoch(loader), rest_of_epoch(reference));
}

TEST_P(StreamTest, ResumesAtEveryBatchBoundary) {
  Loader first(stream(), options({}, 3));
  const auto whole = rest_of_epoch(first);
  first.set_epoch(0);
  Loader second(stream(), options(GetParam(), 3));
  for (std::size_t done = 0; done <= whole.size(); ++done) {
    second.load_state_dict(first.state_dict());
    EXPECT_EQ(rest_of_epoch(second),
              std::vector<std::uint64_t>(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()))
        << done;
    if (done < whole.size()) {
      ASSERT_TRUE(first.next());
    }
  }
}

TEST_P(StreamTest, IndicesAreTheRowsWithinTheShard) {
  Loader loader(stream(), options(GetParam(), 2));
  EXPECT_EQ(loader.next()->indices(), testing::iota(4));
  EXPECT_EQ(loader.next()->indices(), testing::iota(4));
  EXPECT_EQ(loader.next()->indices()[0], 4);
}

TEST_P(StreamTest, SkipLeavesTheFaultySamplesOutAndOnlyThem) {
  const SyntheticStream holes(50, stream().schema(), {.fail_every = 7});
  LoaderOptions skipping = options(GetParam(), 3);
  skipping.on_error = OnError::kSkip;
  Loader loader(holes, std::move(skipping));
  std::vector<std::int64_t> seen;
  while (auto batch = loader.next()) {
    const auto* index = batch->at("index").as<std::int64_t>();
    seen.insert(seen.end(), index, index + batch->size());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < 50; ++i) {
    if (i % 7 != 6) expected.push_back(i);
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(loader.stats().skipped, 7U);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, StreamTest, ::testing::ValuesIn(testing::all_crews({1, 2, 5})),
                         [](const auto& test) { return test.param.name(); });

TEST(StreamOptionsTest, AStateOfAnotherShardingIsAStateErrorWithTheCure) {
  Loader three(stream(), options({}, 3));
  Loader two(stream(), options({}, 2));
  ASSERT_TRUE(three.next());
  try {
    two.load_state_dict(three.state_dict());
    FAIL();
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find("Set stream_shards to 3"), std::string::npos) << error.what();
  }
}

TEST(StreamOptionsTest, RefusesASamplerOverAStream) {
  EXPECT_THROW(Loader(stream(), {.batch_size = 2, .shuffle = true}), ConfigError);
}

TEST(StreamOptionsTest, OneShardKnowsItsNumberOfBatches) {
  Loader loader(stream(), options({}, 1));
  EXPECT_EQ(loader.size(), 13);
}

}  // namespace
}  // namespace infeed

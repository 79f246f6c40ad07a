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

const Schema kSchema{{"x", DType::kFloat32, {4}}, {"index", DType::kInt64, {}}};
// Samples 6, 13, 20, ... 97 cannot be read: 14 of 100.
const SyntheticDataset kHoles(100, kSchema, {.fail_every = 7});

LoaderOptions options(const Crew& crew, OnError on_error, bool drop_last = false) {
  return {.batch_size = 8,
          .drop_last = drop_last,
          .num_workers = crew.workers,
          .worker_kind = crew.kind,
          .on_error = on_error};
}

class FaultsTest : public ::testing::TestWithParam<Crew> {};

TEST_P(FaultsTest, RaiseNamesTheSampleAndTheLoaderGoesOn) {
  // Samples 19, 39, 59, 79 and 99: in 5 of 13 batches.
  const SyntheticDataset rare(100, kSchema, {.fail_every = 20});
  Loader loader(rare, options(GetParam(), OnError::kRaise));
  int raised = 0;
  int good = 0;
  for (bool more = true; more;) {
    try {
      more = loader.next().has_value();
      good += more ? 1 : 0;
    } catch (const DataError& error) {
      if (raised++ == 0) {
        EXPECT_NE(std::string(error.what()).find("sample 19 of batch 2"), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_EQ(raised, 5);
  EXPECT_EQ(good, 8);
}

TEST_P(FaultsTest, SkipKeepsBatchesFullAndTheOrder) {
  Loader loader(kHoles, options(GetParam(), OnError::kSkip));
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < 100; ++i) {
    if (i % 7 != 6) expected.push_back(i);
  }
  std::vector<std::int64_t> seen;
  while (auto batch = loader.next()) {
    EXPECT_TRUE(batch->size() == 8 || seen.size() == 80);
    for (std::int64_t i = 0; i < batch->size(); ++i) seen.push_back(batch->at("index").as<std::int64_t>()[i]);
  }
  EXPECT_EQ(seen, expected);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.skipped, 14U);
  ASSERT_EQ(stats.faulty.size(), 14U);
  EXPECT_EQ(stats.faulty[1].index, 13);
  EXPECT_FALSE(stats.faulty[1].reason.empty());
}

TEST_P(FaultsTest, SkipWithDropLastGivesFullBatchesOnly) {
  Loader loader(kHoles, options(GetParam(), OnError::kSkip, true));
  std::int64_t samples = 0;
  while (auto batch = loader.next()) samples += batch->size();
  EXPECT_EQ(samples, 80);
}

TEST_P(FaultsTest, SkipResumesAtEveryBatchBoundary) {
  Loader first(kHoles, options({}, OnError::kSkip));
  const auto whole = rest_of_epoch(first);
  first.set_epoch(0);
  Loader second(kHoles, options(GetParam(), OnError::kSkip));
  for (std::size_t done = 0; done <= whole.size(); ++done) {
    second.load_state_dict(first.state_dict());
    EXPECT_EQ(rest_of_epoch(second),
              std::vector<std::uint64_t>(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()));
    if (done < whole.size()) {
      ASSERT_TRUE(first.next());
    }
  }
}

TEST_P(FaultsTest, ReplaceTakesTheNextSampleThatCanBeRead) {
  Loader loader(kHoles, options(GetParam(), OnError::kReplace));
  const std::vector<std::int64_t> seen = rest_of_indices(loader);
  ASSERT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen[6], 7);
  EXPECT_EQ(seen[13], 14);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.replaced, 14U);
  ASSERT_FALSE(stats.faulty.empty());
  EXPECT_EQ(stats.faulty[0].index, 6);
  EXPECT_EQ(stats.faulty[0].replaced_by, 7);
}

TEST_P(FaultsTest, ADatasetWithoutOneGoodSampleEndsInAnError) {
  const SyntheticDataset bad(40, kSchema, {.fail_every = 1});
  Loader replace(bad, options(GetParam(), OnError::kReplace));
  EXPECT_THROW((void)replace.next(), DataError);
  Loader skip(bad, options(GetParam(), OnError::kSkip));
  EXPECT_FALSE(skip.next());
}

INSTANTIATE_TEST_SUITE_P(AllKinds, FaultsTest, ::testing::ValuesIn(testing::all_crews({1, 3})),
                         [](const auto& test) { return test.param.name(); });

TEST(ManyFaultsTest, MoreFaultsInABatchThanCanBeListedAreAnErrorNotGarbage) {
  const SyntheticDataset bad(2000, kSchema, {.fail_every = 2});
  Loader loader(bad, {.batch_size = 2000, .num_workers = 2, .on_error = OnError::kSkip});
  EXPECT_THROW((void)loader.next(), DataError);
  EXPECT_FALSE(loader.next());
}

// Throws what is no Error of infeed.
class Thrower final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 4; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override {
    if (row.index() == 1) throw std::runtime_error("the disk is on fire");
    if (row.index() == 2) throw 42;
    row.set<std::int64_t>(0, row.index());
  }

 private:
  Schema schema_{{"index", DType::kInt64, {}}};
};

TEST(ForeignFaultsTest, ExceptionsOfTheUserKeepTheirText) {
  const Thrower dataset;
  for (const Crew crew : {Crew{WorkerKind::kInline, 0}, Crew{WorkerKind::kThread, 1}, Crew{WorkerKind::kFork, 1}}) {
    Loader loader(dataset, {.batch_size = 1, .num_workers = crew.workers, .worker_kind = crew.kind});
    EXPECT_TRUE(loader.next());
    try {
      (void)loader.next();
      FAIL();
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("the disk is on fire"), std::string::npos) << error.what();
    }
    EXPECT_THROW((void)loader.next(), DataError);
    EXPECT_TRUE(loader.next());
  }
}

TEST(ForeignFaultsTest, SpawnWithoutASpecIsAConfigError) {
  const Thrower dataset;
  EXPECT_THROW(Loader(dataset, {.batch_size = 1, .num_workers = 1, .worker_kind = WorkerKind::kSpawn}), ConfigError);
}

TEST(ForeignFaultsTest, AnExceptionInWorkerInitIsAWorkerError) {
  const SyntheticDataset data(10, kSchema);
  for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork}) {
    try {
      Loader loader(data,
                    {.batch_size = 2, .num_workers = 2, .worker_kind = kind, .worker_init = [](const WorkerInfo& info) {
                       if (info.id == 1) throw std::runtime_error("no such database");
                     }});
      while (loader.next()) {
      }
      // With one healthy worker the epoch may end before the other one's failure is seen; the next one sees it.
      while (loader.next()) {
      }
    } catch (const WorkerError& error) {
      EXPECT_NE(std::string(error.what()).find("no such database"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace infeed

#include <gtest/gtest.h>

#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"

namespace infeed {
namespace {

using testing::checksum;
using testing::Crew;
using testing::rest_of_epoch;

// 101 samples in batches of 7: a short last batch, runs of one row.
const SyntheticDataset& dataset() {
  static const SyntheticDataset data(101, {{"x", DType::kFloat32, {3, 5}}, {"index", DType::kInt64, {}}},
                                     {.seed = 3, .augment = true});
  return data;
}

LoaderOptions options(const Crew& crew, Filling filling) {
  return {.batch_size = 7,
          .shuffle = true,
          .seed = 11,
          .num_workers = crew.workers,
          .worker_kind = crew.kind,
          .filling = filling};
}

std::vector<std::uint64_t> expected(int epoch) {
  Loader loader(dataset(), options({}, Filling::kWhole));
  loader.set_epoch(static_cast<std::uint64_t>(epoch));
  return rest_of_epoch(loader);
}

struct Case {
  Crew crew;
  Filling filling;
};

class EqualityTest : public ::testing::TestWithParam<Case> {};

TEST_P(EqualityTest, TwoEpochsEqualThoseOfTheInlineLoader) {
  Loader loader(dataset(), options(GetParam().crew, GetParam().filling));
  EXPECT_EQ(rest_of_epoch(loader), expected(0));
  EXPECT_EQ(rest_of_epoch(loader), expected(1));
}

TEST_P(EqualityTest, ResumesEquallyAtEveryBatchBoundary) {
  const std::vector<std::uint64_t> whole = expected(1);
  Loader first(dataset(), options({}, Filling::kAuto));
  Loader second(dataset(), options(GetParam().crew, GetParam().filling));
  first.set_epoch(1);
  for (std::size_t done = 0; done <= whole.size(); ++done) {
    second.load_state_dict(first.state_dict());
    EXPECT_EQ(rest_of_epoch(second),
              std::vector<std::uint64_t>(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()))
        << "after " << done;
    if (done < whole.size()) {
      ASSERT_TRUE(first.next());
    }
  }
}

TEST_P(EqualityTest, BatchesTakenInAnyOrderAreTheSameSet) {
  LoaderOptions loose = options(GetParam().crew, GetParam().filling);
  loose.in_order = false;
  loose.prefetch = 4;
  Loader loader(dataset(), std::move(loose));
  const std::vector<std::uint64_t> whole = expected(0);
  std::vector<std::uint64_t> by_number(whole.size(), 0);
  while (auto batch = loader.next()) by_number.at(batch->number()) = checksum(*batch);
  EXPECT_EQ(by_number, whole);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Crew& crew : testing::all_crews({1, 2, 3, 7})) {
    all.push_back({crew, Filling::kCooperative});
    all.push_back({crew, Filling::kWhole});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllKinds, EqualityTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.crew.name() + (test.param.filling == Filling::kWhole ? "whole" : "cooperative");
});

}  // namespace
}  // namespace infeed

// Batches that the user keeps, and what a machine without room for more says.

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "process/team.h"

namespace infeed::testing {
namespace {

std::vector<Batch> whole_epoch(Loader& loader) {
  std::vector<Batch> held;
  while (auto batch = loader.next()) held.push_back(std::move(*batch));
  return held;
}

class HeldTest : public ::testing::TestWithParam<Team> {};

// More batches than there are extents: the last ones are copies.
TEST_P(HeldTest, AnEpochHeldWholeStaysValidAfterTheLoaderIsGone) {
  const TestDataset data({.size = 1200});
  LoaderOptions options = GetParam().options();
  options.batch_size = 1;
  auto loader = std::make_unique<Loader>(data, std::move(options));
  std::vector<Batch> held = whole_epoch(*loader);
  EXPECT_GT(loader->stats().private_copies, 0);
  loader.reset();
  std::vector<std::uint64_t> sums;
  for (const Batch& batch : held) sums.push_back(checksum(batch));
  EXPECT_EQ(sums, undisturbed(data, 0, 1));
  EXPECT_EQ(mapped_arenas(), 1U);
  held.clear();
  EXPECT_EQ(mapped_arenas(), 0U);
}

TEST_P(HeldTest, AMemoryLimitTurnsHoldingIntoAnErrorThatCountsTheBatches) {
  const SyntheticDataset data(400, {{"x", DType::kUInt8, {1 << 16}}});
  LoaderOptions options = GetParam().options();
  options.memory_limit = 8 << 20;
  Loader loader(data, std::move(options));
  std::vector<Batch> held;
  try {
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_TRUE(has(error.what(), std::to_string(held.size()) + " batches of 0.5 MiB are held")) << error.what();
  }
  held.clear();
  EXPECT_TRUE(loader.next());
}

INSTANTIATE_TEST_SUITE_P(Teams, HeldTest,
                         ::testing::ValuesIn(teams({WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn})),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace infeed::testing

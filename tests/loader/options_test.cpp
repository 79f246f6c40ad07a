#include "infeed/loader/options.h"

#include <gtest/gtest.h>

#include <functional>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/batch.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"

namespace infeed {
namespace {

const SyntheticDataset kTen(10, {{"x", DType::kFloat32, {4}}});

// Expects a ConfigError whose text contains `word`.
void refuses(LoaderOptions options, const std::string& word) {
  try {
    Loader loader(kTen, std::move(options));
    FAIL() << "accepted; wanted an error about " << word;
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(OptionsTest, RefusesImpossibleNumbers) {
  refuses({.batch_size = 0}, "batch_size is 0");
  refuses({.num_workers = -1}, "num_workers is -1");
  refuses({.num_workers = 65}, "num_workers is 65");
  refuses({.num_workers = 1, .threads_per_worker = 0}, "threads_per_worker is 0");
  refuses({.num_workers = 1, .prefetch = -2}, "prefetch is -2");
  refuses({.num_workers = 1, .prefetch = 1 << 30}, "prefetch is 1073741824");
  refuses({.timeout_ms = -5}, "timeout_ms is -5");
  refuses({.num_workers = 1, .max_restarts = -2}, "max_restarts is -2");
  refuses({.num_workers = 1, .cpu_affinity = {-1}}, "cpu_affinity");
}

TEST(OptionsTest, RefusesWhatExcludesEachOther) {
  refuses({.shuffle = true, .sampler = std::make_unique<SequentialSampler>(10)}, "exclude");
  refuses({.num_workers = 2, .worker_kind = WorkerKind::kInline}, "inline");
  refuses({.num_workers = 1, .worker_kind = WorkerKind::kSpawn, .worker_init = [](const WorkerInfo&) {}},
          "worker_init");
  refuses({.num_workers = 1, .worker_init_name = "seed"}, "worker_init_name");
  refuses({.stream_shards = 2}, "stream_shards");
}

TEST(OptionsTest, RefusesVariableShapesWithoutACollate) {
  const SyntheticDataset ragged(10, {{"x", DType::kFloat32, {-1}}});
  EXPECT_THROW(Loader(ragged, {.batch_size = 2}), ConfigError);
}

TEST(OptionsTest, RefusesAMemoryLimitBelowTheDepthWithTheNumbers) {
  const SyntheticDataset large(10, {{"x", DType::kUInt8, {1 << 20}}});
  try {
    Loader loader(large, {.batch_size = 4, .memory_limit = 8 << 20});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("3 batches of 4.0 MiB need 12 MiB, memory_limit is 8 MiB"),
              std::string::npos)
        << error.what();
  }
}

TEST(OptionsTest, RefusesABatchThatTheMachineCannotHold) {
  const SyntheticDataset huge(10, {{"x", DType::kUInt8, {std::int64_t{1} << 40}}});
  EXPECT_THROW(Loader(huge, {.batch_size = 2}), MemoryError);
}

// A sampler whose size() and next() are set by the test.
class OddSampler final : public Sampler {
 public:
  OddSampler(std::vector<std::int64_t> indices, std::int64_t claimed)
      : indices_(std::move(indices)), claimed_(claimed) {}
  void start_epoch(std::uint64_t) override { at_ = 0; }
  std::size_t next(std::span<std::int64_t> out) override {
    std::size_t n = 0;
    while (n < out.size() && at_ < indices_.size()) out[n++] = indices_[at_++];
    return n;
  }
  std::optional<std::int64_t> size() const override { return claimed_; }
  void save(State&) const override {}
  void load(const State&) override {}

 private:
  std::vector<std::int64_t> indices_;
  std::int64_t claimed_;
  std::size_t at_ = 0;
};

// Expects an IndexError whose text contains `word` from an epoch.
void epoch_refuses(std::vector<std::int64_t> indices, std::int64_t claimed, const std::string& word) {
  Loader loader(
      kTen, {.batch_size = 2, .sampler = std::make_unique<OddSampler>(std::move(indices), claimed), .num_workers = 1});
  try {
    while (loader.next()) {
    }
    FAIL() << "no error about " << word;
  } catch (const IndexError& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(OptionsTest, ASamplerThatBreaksItsPromiseIsAnErrorAtOnce) {
  epoch_refuses({0, 1, 2}, 5, "ended after 3");
  epoch_refuses({0, 1, 2, 3}, 2, "size() is 2");
  epoch_refuses({0, 10}, 2, "index 10 at position 1");
  epoch_refuses({0, -1}, 2, "index -1");
}

}  // namespace
}  // namespace infeed

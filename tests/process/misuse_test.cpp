#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "support/child.h"
#include "support/epochs.h"
#include "support/processes.h"
#include "support/temp_folder.h"

// What careless users did to the loader, and what it does now.

namespace infeed {
namespace {

const Schema kSchema{{"x", DType::kFloat32, {4}}, {"index", DType::kInt64, {}}};

TEST(MisuseTest, ADatasetMayStandOnABatchThatAnotherLoaderGave) {
  const SyntheticDataset source(8, kSchema);
  Loader first(source, {.batch_size = 8});
  const auto batch = first.next();
  const TensorDataset on_batch(batch->arrays(), {}, batch->owner());
  Loader second(on_batch, {.batch_size = 4, .num_workers = 2, .worker_kind = WorkerKind::kFork});
  EXPECT_EQ(testing::rest_of_indices(second), testing::iota(8));
}

// Its describe() fails, as a database that is gone would.
class Indescribable final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 200; }
  [[nodiscard]] const Schema& schema() const override { return slow_.schema(); }
  void read(Row& row) const override { slow_.read(row); }
  [[nodiscard]] std::string describe(std::int64_t) const override { throw std::runtime_error("no connection"); }

 private:
  SyntheticDataset slow_{200, kSchema, {.cost_us = 200}};
};

TEST(MisuseTest, ADescriptionThatThrowsDoesNotKeepADeadWorkerFromItsGrave) {
  const Indescribable dataset;
  Loader loader(dataset, {.batch_size = 4, .num_workers = 2, .worker_kind = WorkerKind::kFork});
  ASSERT_TRUE(loader.next());
  kill(static_cast<pid_t>(loader.stats().workers.at(0).pid), SIGKILL);
  EXPECT_EQ(testing::rest_of_indices(loader).size(), 196U);
}

TEST(MisuseTest, WithStandardStreamsClosedPrintsDoNotLandInTheRing) {
  EXPECT_EQ(testing::exit_code_of_child([] {
              for (int fd = 0; fd < 3; ++fd) close(fd);
              const SyntheticDataset data(64, kSchema);
              Loader loader(data, {.batch_size = 8, .num_workers = 2, .worker_kind = WorkerKind::kFork});
              const std::string text(4096, 'x');
              if (write(1, text.data(), text.size()) >= 0) return 1;  // would be the arena
              return testing::rest_of_indices(loader) == testing::iota(64) ? 0 : 2;
            }),
            0);
}

// A damaged archive: every sample fails, and the end never comes.
class EndlessFailure final : public Stream {
 public:
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] std::unique_ptr<StreamReader> open(std::uint64_t, std::int64_t, std::int64_t) const override {
    struct Reader final : StreamReader {
      bool next(Row&) override { throw DataError("truncated archive"); }
      std::int64_t skip(std::int64_t count) override { return count; }
    };
    return std::make_unique<Reader>();
  }

 private:
  Schema schema_ = kSchema;
};

TEST(MisuseTest, AStreamThatOnlyFailsEndsInAnErrorAlsoWithSkip) {
  const EndlessFailure stream;
  Loader loader(stream, {.batch_size = 4, .on_error = OnError::kSkip});
  EXPECT_THROW((void)loader.next(), DataError);
  EXPECT_FALSE(loader.next());
}

// Shard 0 only fails, shard 1 only gives: neither ends.
class HalfDamaged final : public Stream {
 public:
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] std::unique_ptr<StreamReader> open(std::uint64_t, std::int64_t shard, std::int64_t) const override {
    struct Reader final : StreamReader {
      explicit Reader(bool damaged) : damaged_(damaged) {}
      bool next(Row& row) override {
        if (damaged_) throw DataError("truncated archive");
        row.set<std::int64_t>(0, 1);
        return true;
      }
      std::int64_t skip(std::int64_t count) override { return count; }
      bool damaged_;
    };
    return std::make_unique<Reader>(shard == 0);
  }

 private:
  Schema schema_{{"x", DType::kInt64, {}}};
};

TEST(MisuseTest, ADamagedShardAmongGoodOnesEndsInOneErrorAndTheyGoOn) {
  const HalfDamaged stream;
  Loader loader(stream, {.batch_size = 4, .stream_shards = 2, .on_error = OnError::kSkip});
  int errors = 0;
  for (int call = 0; call < 200; ++call) {
    try {
      EXPECT_EQ(loader.next()->size(), 4);
    } catch (const DataError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find("shard 0 of the stream"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(errors, 1);
}

// Ends the program in the middle of a sample.
class Quitter final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 4; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row&) const override { std::exit(7); }

 private:
  Schema schema_ = kSchema;
};

TEST(MisuseTest, ExitInsideNextEndsTheProgramThoughTheLoaderIsStatic) {
  EXPECT_EQ(testing::exit_code_of_child([] {
              static const Quitter dataset;
              static Loader loader(dataset, {.batch_size = 2});
              (void)loader.next();
              return 1;
            }),
            7);
}

TEST(MisuseTest, ABatchLargerThanTheDatasetCostsNoMoreThanTheDataset) {
  const SyntheticDataset small(10, kSchema);
  Loader loader(small, {.batch_size = 100'000'000, .shuffle = true, .num_workers = 1});
  EXPECT_EQ(loader.next()->size(), 10);
  EXPECT_LE(loader.stats().arena_bytes, 4U << 20);
}

TEST(MisuseTest, AWorkerProgramThatNeverAttachesIsAnErrorThatNamesTheOption) {
  const testing::TempFolder folder;
  folder.write("no-worker", "#!/bin/sh\nexec sleep 1000\n");
  chmod(folder.at("no-worker").c_str(), 0700);
  const SyntheticDataset data(10, kSchema);
  Loader loader(data, {.batch_size = 2,
                       .num_workers = 1,
                       .worker_kind = WorkerKind::kSpawn,
                       .start_timeout_ms = 100,
                       .worker_executable = folder.at("no-worker")});
  try {
    (void)loader.next();
    FAIL();
  } catch (const WorkerError& error) {
    EXPECT_NE(std::string(error.what()).find("has not attached within start_timeout_ms 100. Is worker_executable"),
              std::string::npos)
        << error.what();
  }
}

TEST(MisuseTest, StatesWithAbsurdPositionsAreRefused) {
  const SyntheticDataset data(10, kSchema);
  Loader loader(data, {.batch_size = 2});
  ASSERT_TRUE(loader.next());
  State state = loader.state_dict();
  State position = state.get_state("position");
  position.set("origin", std::int64_t{0x7fffffffffffffff});
  position.set("cursor", std::int64_t{0x7fffffffffffffff});
  state.set("position", position);
  EXPECT_THROW(loader.load_state_dict(state), StateError);
  EXPECT_EQ(loader.next()->indices()[0], 2);
}

TEST(MisuseTest, AStateCannotMakeTheLoaderPassOverBatchesThatNobodyGot) {
  const SyntheticDataset data(10, kSchema);
  Loader loader(data, {.batch_size = 2});
  ASSERT_TRUE(loader.next());
  State state = loader.state_dict();
  State position = state.get_state("position");
  for (const std::vector<std::int64_t>& early :
       {std::vector<std::int64_t>{0}, {2}, {5}, {6, 4}, {4, 4}, {12}, {-2}, {std::int64_t{1} << 62}}) {
    position.set("delivered_early", early);
    state.set("position", position);
    EXPECT_THROW(loader.load_state_dict(state), StateError) << early[0];
  }
  EXPECT_EQ(testing::rest_of_indices(loader).size(), 8U);
}

}  // namespace
}  // namespace infeed

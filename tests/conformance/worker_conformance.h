#pragma once
// What every kind of worker must do. A test program includes this and names its kinds:
//   INSTANTIATE_TEST_SUITE_P(Fork, WorkerConformance, ::testing::Values(WorkerKind::kFork));

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "support/processes.h"
#include "support/sanitizers.h"
#include "worker/consumer.h"

namespace infeed::testing {

class WorkerConformance : public ::testing::TestWithParam<WorkerKind> {
 protected:
  WorkerConformance() { scene.kind = GetParam(); }

  void expect_right(const std::vector<Taken>& batches, int count, std::uint64_t first = 0) {
    ASSERT_EQ(batches.size(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      EXPECT_EQ(batches[i].result.number, first + i);
      EXPECT_EQ(batches[i].rows, expected_rows(scene, first + i)) << "batch " << first + i;
    }
  }
  /// ThreadSanitizer does not see that the consumer, another process, orders what two threads write.
  void use_threads(int threads) {
    const bool processes = scene.kind == WorkerKind::kFork || scene.kind == WorkerKind::kSpawn;
    if (!kThreadSanitized || !processes) scene.threads_per_worker = threads;
  }
  void expect_right_run(int count) {
    Consumer consumer(scene);
    expect_right(consumer.run(count), count);
    EXPECT_TRUE(consumer.deaths().empty());
  }

  Scene scene;
};

TEST_P(WorkerConformance, FillsBatchesTogether) { expect_right_run(50); }

TEST_P(WorkerConformance, FillsWholeBatchesInPlace) {
  scene.whole = true;
  expect_right_run(50);
}

TEST_P(WorkerConformance, GathersAndCollatesRowsOfVaryingSize) {
  scene.behaviour.variable = true;
  expect_right_run(50);
}

TEST_P(WorkerConformance, WorksWithSeveralThreadsInAWorker) {
  use_threads(3);
  expect_right_run(50);
}

TEST_P(WorkerConformance, FillsBatchesOfOneRow) {
  scene.rows = 1;
  expect_right_run(200);
}

TEST_P(WorkerConformance, ReportsAnExceptionAndGoesOn) {
  scene.behaviour.raises = {3, 20};
  Consumer consumer(scene);
  const auto batches = consumer.run(3);
  ASSERT_EQ(batches.size(), 3U);
  ASSERT_EQ(batches[0].result.reports.size(), 1U);
  const RowReport& report = batches[0].result.reports[0];
  EXPECT_EQ(report.fault, RowFault::kRaised);
  EXPECT_EQ(report.row, 3);
  EXPECT_EQ(report.index, 3);
  EXPECT_EQ(report.text, "sample 3 is bad");
  EXPECT_EQ(batches[1].result.reports.at(0).row, 4);
  EXPECT_TRUE(batches[2].result.reports.empty());
}

TEST_P(WorkerConformance, LeavesASkippedRowAsItIs) {
  scene.behaviour.raises = {3};
  scene.on_error = FaultPolicy::kSkip;
  Consumer consumer(scene);
  const auto batches = consumer.run(1);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].result.reports.at(0).fault, RowFault::kSkipped);
  EXPECT_EQ(batches[0].result.rows, scene.rows);
  EXPECT_EQ(batches[0].rows[4], expected_row(scene, 4));
}

TEST_P(WorkerConformance, LeavesASkippedRowOutOfACollate) {
  scene.behaviour.variable = true;
  scene.behaviour.raises = {0, 3};
  scene.on_error = FaultPolicy::kSkip;
  Consumer consumer(scene);
  const auto batches = consumer.run(1);
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].result.rows, scene.rows - 2);
  EXPECT_EQ(batches[0].result.indices[0], 1);
  EXPECT_EQ(batches[0].rows[2], expected_row(scene, 4));
}

TEST_P(WorkerConformance, ReplacesABadSampleByTheNextGoodOne) {
  scene.behaviour.raises = {3, 4};
  scene.on_error = FaultPolicy::kReplace;
  Consumer consumer(scene);
  const auto batches = consumer.run(1);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].result.indices.at(3), 5);
  EXPECT_EQ(batches[0].result.indices.at(4), 5);
  EXPECT_EQ(batches[0].rows[3], expected_row(scene, 5));
  EXPECT_EQ(batches[0].result.reports.at(0).fault, RowFault::kReplaced);
}

TEST_P(WorkerConformance, GivesUpReplacingAfterTheLastTry) {
  scene.behaviour.size = 40;
  scene.on_error = FaultPolicy::kReplace;
  for (std::int64_t i = 1; i < 40; ++i) scene.behaviour.raises.push_back(i);
  Consumer consumer(scene);
  const auto batches = consumer.run(1);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].result.reports.at(0).fault, RowFault::kRaised);
}

TEST_P(WorkerConformance, ReadsTheShardsOfAStream) {
  scene.stream = true;
  scene.behaviour.size = 70;  // 35 samples a shard: 2 batches of 16 and one of 3
  Consumer consumer(scene);
  for (int batch = 0; batch < 3; ++batch) {
    for (int shard = 0; shard < 2; ++shard) {
      ASSERT_TRUE(consumer.arm_shard(shard, batch * 16));
      const auto taken = consumer.take();
      ASSERT_TRUE(taken);
      EXPECT_EQ(taken->result.rows, batch < 2 ? 16 : 3);
      EXPECT_EQ(taken->result.shard_ended, batch == 2);
      EXPECT_EQ(taken->rows.back(), expected_row(scene, shard + 2 * (batch < 2 ? batch * 16 + 15 : 34)));
    }
  }
}

TEST_P(WorkerConformance, GoesBackInAShard) {
  scene.stream = true;
  Consumer consumer(scene);
  for (const std::int64_t first : {0, 64, 16, 16}) {
    ASSERT_TRUE(consumer.arm_shard(1, first));
    const auto taken = consumer.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->rows.front(), expected_row(scene, 1 + 2 * first));
  }
}

TEST_P(WorkerConformance, CountsABadSampleOfAStreamAsConsumed) {
  scene.stream = true;
  scene.num_shards = 1;
  scene.behaviour.raises = {5};
  scene.on_error = FaultPolicy::kSkip;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm_shard(0, 0) && consumer.arm_shard(0, 16));
  const auto first = consumer.take();
  const auto second = consumer.take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->result.rows, 15);
  EXPECT_FALSE(first->result.shard_ended);
  EXPECT_EQ(first->result.reports.at(0).index, 5);
  EXPECT_EQ(second->rows.front(), expected_row(scene, 16));
}

TEST_P(WorkerConformance, CollatesTheRowsOfAStream) {
  scene.stream = true;
  scene.num_shards = 1;
  scene.behaviour.variable = true;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm_shard(0, 8));
  const auto taken = consumer.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->rows.front(), expected_row(scene, 8));
  EXPECT_EQ(taken->rows.back(), expected_row(scene, 23));
}

TEST_P(WorkerConformance, CallsWorkerInitOnceInEachWorker) {
  const std::string path = ::testing::TempDir() + "infeed_init_" + std::to_string(getpid());
  ::setenv("INFEED_TEST_LOG", path.c_str(), 1);
  scene.init = "log";
  use_threads(2);
  {
    Consumer consumer(scene);
    expect_right(consumer.run(30), 30);
  }
  std::multiset<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.insert(line.substr(0, line.rfind(' ')));
  std::remove(path.c_str());
  if (scene.kind == WorkerKind::kInline)
    EXPECT_EQ(lines, (std::multiset<std::string>{"0 1 7"}));
  else
    EXPECT_EQ(lines, (std::multiset<std::string>{"0 2 7", "1 2 7"}));
}

TEST_P(WorkerConformance, TellsWhyAWorkerCannotStart) {
  scene.init = "fail";
  scene.workers = 1;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(0));
  EXPECT_FALSE(consumer.take());
  EXPECT_EQ(consumer.start_failure(), "worker 0 has no licence");
}

TEST_P(WorkerConformance, StaysRightWhileWorkersComeAndGo) {
  Consumer consumer(scene);
  const int sizes[] = {5, 1, 3, 1, 2, 6, 4, 1, 6, 2};
  for (std::uint64_t round = 0; round < 10; ++round) {
    consumer.pool().resize(sizes[round]);
    expect_right(consumer.run(8, 8 * round), 8, 8 * round);
  }
  EXPECT_TRUE(consumer.deaths().empty());
}

TEST_P(WorkerConformance, CountsRowsAndTimes) {
  Consumer consumer(scene);
  expect_right(consumer.run(10), 10);
  consumer.stop();
  EXPECT_EQ(consumer.total().rows, 160U);
  EXPECT_EQ(consumer.total().read_ns, 160'000U);
  EXPECT_GT(consumer.total().busy_ns, 0U);
}

TEST_P(WorkerConformance, RefusesACpuThatIsNotThere) {
  if (scene.kind == WorkerKind::kInline) GTEST_SKIP() << "the caller is not bound";
  scene.cpu_affinity = {1000};
  EXPECT_THROW(Consumer{scene}, ConfigError);
}

TEST_P(WorkerConformance, BindsWorkersToTheCpusNamed) {
  scene.cpu_affinity = {0};
  expect_right_run(10);
}

TEST_P(WorkerConformance, StopsWithBatchesInHand) {
  scene.behaviour.sleep_us = 1000;
  for (int round = 0; round < 10; ++round) {
    Consumer consumer(scene);
    for (std::uint64_t batch = 0; batch < 4; ++batch) ASSERT_TRUE(consumer.arm(batch));
  }
}

TEST_P(WorkerConformance, LeavesNothingBehind) {
  scene.behaviour.sleep_us = 100;
  expect_right_run(2);  // what is made once for the process
  const std::size_t fds = open_descriptors();
  for (int round = 0; round < 5; ++round) expect_right_run(2);
  EXPECT_EQ(open_descriptors(), fds);
  EXPECT_TRUE(children().empty());
}

}  // namespace infeed::testing

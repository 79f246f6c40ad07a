#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include "conformance/worker_conformance.h"

namespace infeed::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Thread, WorkerConformance, ::testing::Values(WorkerKind::kThread));

std::multiset<std::string> thread_names() {
  std::multiset<std::string> names;
  for (const std::string& thread : list_directory("/proc/self/task")) {
    std::ifstream file("/proc/self/task/" + thread + "/comm");
    std::string name;
    std::getline(file, name);
    names.insert(name);
  }
  return names;
}

Scene sleepy() {
  Scene scene;
  scene.kind = WorkerKind::kThread;
  scene.workers = 4;
  scene.behaviour.sleep_us = 2000;
  return scene;
}

// A thread that gets no CPU for a while leaves its share to the others.
void run_until_all_have_worked(Consumer& consumer) {
  const auto has_worked = [&](int worker) { return consumer.ring().stats(worker).rows > 0; };
  for (std::uint64_t first = 0; !(has_worked(0) && has_worked(1) && has_worked(2) && has_worked(3)); first += 4)
    consumer.run(4, first);
}

TEST(ThreadPool, GivesEachWorkerAThreadHoweverFewCpus) {
  Consumer consumer(sleepy());
  run_until_all_have_worked(consumer);
  for (int worker = 0; worker < 4; ++worker) EXPECT_EQ(thread_names().count("infeed:w" + std::to_string(worker)), 1U);
}

TEST(ThreadPool, GivesTheNamesBack) {
  { Consumer(sleepy()).run(4); }
  for (const std::string& name : thread_names()) EXPECT_NE(name.substr(0, 7), "infeed:");
}

TEST(ThreadPool, MakesNoThreadsForEveryPoolAnew) {
  for (int round = 0; round < 20; ++round) Consumer(sleepy()).run(4);
  EXPECT_LE(thread_names().size(), static_cast<std::size_t>(1 + 4 + tbb::info::default_concurrency()));
}

TEST(ThreadPool, WorksWhereTheUserAllowsOneThread) {
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  Scene scene = sleepy();
  scene.whole = true;  // assigned runs: each seat must get its turn
  Consumer consumer(scene);
  const auto batches = consumer.run(12);
  ASSERT_EQ(batches.size(), 12U);
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(batches[i].rows, expected_rows(scene, i));
}

TEST(ThreadPool, SeesWorkThatComesAsATaskEnds) {
  Scene scene = sleepy();
  scene.behaviour.sleep_us = 0;
  scene.rows = 1;
  Consumer consumer(scene);
  for (std::uint64_t batch = 0; batch < 5000; ++batch) {
    ASSERT_TRUE(consumer.arm(batch));
    ASSERT_TRUE(consumer.take());
  }
}

TEST(ThreadPool, SharesTheProcessWithAnotherPool) {
  Consumer a(sleepy());
  Consumer b(sleepy());
  run_until_all_have_worked(a);
  run_until_all_have_worked(b);
}

}  // namespace
}  // namespace infeed::testing

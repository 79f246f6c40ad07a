#include "conformance/worker_conformance.h"

namespace infeed::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Spawn, WorkerConformance, ::testing::Values(WorkerKind::kSpawn));

Scene spawned() {
  Scene scene;
  scene.kind = WorkerKind::kSpawn;
  scene.workers = 1;
  return scene;
}

std::string error_of(const Scene& scene) {
  try {
    Consumer consumer(scene);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SpawnPool, TellsWhyTheDatasetCannotBeMade) {
  Scene scene = spawned();
  scene.behaviour.broken = true;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(0));
  EXPECT_FALSE(consumer.take());
  EXPECT_EQ(consumer.start_failure(), "the archive is not there");
}

TEST(SpawnPool, TellsOfAnUnknownWorkerInit) {
  Scene scene = spawned();
  scene.init = "nobody";
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(0));
  EXPECT_FALSE(consumer.take());
  EXPECT_NE(consumer.start_failure().find("nobody"), std::string::npos);
}

TEST(SpawnPool, NamesTheExecutableThatIsNotThere) {
  Scene scene = spawned();
  scene.executable = "/nowhere/infeed-worker";
  EXPECT_NE(error_of(scene).find("worker_executable names \"/nowhere/infeed-worker\""), std::string::npos);
}

TEST(SpawnPool, NamesTheExecutableThatDoesNotStart) {
  Scene scene = spawned();
  scene.executable = "/proc/self/exe/..";
  EXPECT_NE(error_of(scene), "no error");
  EXPECT_TRUE(children().empty());
}

TEST(SpawnPool, StartsWithTheDescriptorsThatTheWorkerUsesTaken) {
  // Whatever number a descriptor has here, it arrives at its place there.
  for (int round = 0; round < 4; ++round) {
    std::vector<int> fillers;
    for (int i = 0; i < round; ++i) fillers.push_back(::dup(0));
    Consumer consumer(spawned());
    for (const int fd : fillers) ::close(fd);
    const auto batches = consumer.run(1);
    ASSERT_EQ(batches.size(), 1U);
    EXPECT_EQ(batches[0].rows, expected_rows(spawned(), 0));
  }
}

TEST(SpawnPool, LeavesTheWorkerNoOtherDescriptors) {
  const int leaky = ::dup(0);
  Consumer consumer(spawned());
  consumer.run(1);
  const auto fds = list_directory("/proc/" + std::to_string(consumer.pool().pid(0)) + "/fd");
  EXPECT_EQ(std::set<std::string>(fds.begin(), fds.end()), (std::set<std::string>{"0", "1", "2", "4", "5"}));
  ::close(leaky);
}

}  // namespace
}  // namespace infeed::testing

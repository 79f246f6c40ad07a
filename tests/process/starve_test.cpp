// Limits that leave too little: an error with the numbers before anything is touched, and no less than is needed works.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "loader/settings.h"
#include "memory/limits.h"
#include "process/team.h"
#include "support/child.h"
#include "support/sanitizers.h"
#include "support/temp_folder.h"

namespace infeed::testing {
namespace {

std::size_t resident_pages() {
  std::size_t mapped = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> mapped >> resident;
  return resident;
}

TEST(StarveTest, AnAddressSpaceThatIsTooSmallIsAnErrorBeforeAnythingIsTouched) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  const TestDataset untouched({.size = 1 << 24});
  EXPECT_EQ(exit_code_of_child([&] {
              const LoweredLimit lowered(RLIMIT_AS, rlim_t{1} << 30);
              const std::size_t before = resident_pages();
              LoaderOptions options = Team{WorkerKind::kFork}.options();
              options.batch_size = 1 << 24;  // 512 MiB
              try {
                Loader loader(untouched, std::move(options));
              } catch (const MemoryError& error) {
                if (!has(error.what(), "RLIMIT_AS")) return 2;
                return children().empty() && resident_pages() - before < 4096 ? 0 : 3;
              }
              return 4;
            }),
            0);
}

std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(StarveTest, TooLittleRoomForThreadsIsAnErrorThatNamesTheWorker) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  const TestDataset data({.size = 64});
  EXPECT_EQ(exit_code_of_child([&] {
              const LoweredLimit stacks(RLIMIT_STACK, rlim_t{8} << 20);
              const LoweredLimit lowered(RLIMIT_AS, mapped_bytes() + (rlim_t{128} << 20));
              LoaderOptions options = Team{WorkerKind::kThread}.options();
              options.num_workers = 60;
              return throws_naming<MemoryError>([&] { (void)Loader(data, std::move(options)).next(); },
                                                {"no thread for worker", "Lower num_workers"})
                         ? 0
                         : 3;
            }),
            0);
}

// A machine of 4 GB whose control group leaves 200 MiB.
MachineLimits in_a_small_cgroup() {
  const TempFolder root;
  root.write("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 3000000 kB\n");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.write("sys/fs/cgroup/job/memory.max", std::to_string(300 << 20));
  root.write("sys/fs/cgroup/job/memory.current", std::to_string(100 << 20));
  return read_machine_limits(root.str());
}

TEST(StarveTest, AControlGroupThatLeavesTooLittleIsAnErrorWithItsNameAndTheNumbers) {
  const Schema schema{{"x", DType::kUInt8, {1 << 20}}};
  const LoaderOptions options{.batch_size = 100, .num_workers = 2};
  try {
    (void)make_settings(options, schema, false, 100, in_a_small_cgroup());
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_TRUE(has(error.what(), "3 batches of 100.0 MiB need 300 MiB, the cgroup's memory.max")) << error.what();
    EXPECT_TRUE(has(error.what(), "leaves 200 MiB. Lower prefetch (2) or batch_size (100)")) << error.what();
  }
  EXPECT_EQ(make_settings(options, schema, false, 60, in_a_small_cgroup()).max_rows, 60);
}

class FewDescriptorsTest : public ::testing::TestWithParam<Team> {};

TEST_P(FewDescriptorsTest, ALimitOf32Suffices) {
  const TestDataset data({.size = 64});
  EXPECT_EQ(exit_code_of_child([&] {
              const LoweredLimit lowered(RLIMIT_NOFILE, 32);
              LoaderOptions options = GetParam().options();
              options.num_workers = 8;
              Loader loader(data, std::move(options));
              return rest_of_epoch(loader) == undisturbed(data) ? 0 : 1;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Teams, FewDescriptorsTest, ::testing::ValuesIn(teams()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace infeed::testing

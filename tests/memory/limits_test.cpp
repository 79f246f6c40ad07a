#include "memory/limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace infeed {
namespace {

/// A folder that looks like the root of a machine.
class LimitsTest : public ::testing::Test {
 protected:
  LimitsTest() : root_(std::filesystem::temp_directory_path() / ("infeed_limits_" + std::to_string(getpid()))) {
    write("/proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 2000000 kB\n");
  }
  ~LimitsTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void join_v2(const std::string& group, const std::string& mount_root = "/") const {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo",
          "30 24 0:26 " + mount_root + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  }
  void join_v1(const std::string& group, const std::string& mount_root = "/") const {
    write("/proc/self/cgroup", "4:memory:" + group + "\n1:cpu,cpuacct:" + group + "\n0::/\n");
    write("/proc/self/mountinfo", "31 24 0:27 " + mount_root +
                                      " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 24 0:28 " + mount_root +
                                      " /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  }
  [[nodiscard]] MachineLimits read() const { return read_machine_limits(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(LimitsTest, TakesTheMachinesFreeMemoryWhereNoGroupLimits) {
  EXPECT_EQ(read().memory_left, 2000000u * 1024);
  EXPECT_NE(read().memory_source.find("MemAvailable"), std::string::npos);
}

TEST_F(LimitsTest, SubtractsWhatAV2GroupUsesButNotItsFileCache) {
  join_v2("/a");
  write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  write("/sys/fs/cgroup/a/memory.current", "600000\n");
  write("/sys/fs/cgroup/a/memory.stat", "anon 100\ninactive_file 200000\n");
  EXPECT_EQ(read().memory_left, 600000u);
  EXPECT_EQ(read().memory_source, "the cgroup's memory.max (/sys/fs/cgroup/a/memory.max)");
}

TEST_F(LimitsTest, TakesTheTightestGroupUpThePath) {
  join_v2("/a/b/c");
  write("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.max", "900000\n");
  write("/sys/fs/cgroup/a/memory.max", "800000\n");
  EXPECT_EQ(read().memory_left, 800000u);
}

TEST_F(LimitsTest, CountsTheThresholdWhereTheKernelStallsAProcess) {
  join_v2("/a");
  write("/sys/fs/cgroup/a/memory.high", "700000\n");
  EXPECT_EQ(read().memory_left, 700000u);
}

TEST_F(LimitsTest, AGroupBeyondItsLimitLeavesNothing) {
  join_v2("/a");
  write("/sys/fs/cgroup/a/memory.max", "1000\n");
  write("/sys/fs/cgroup/a/memory.current", "5000\n");
  EXPECT_EQ(read().memory_left, 0u);
}

TEST_F(LimitsTest, ReadsAV1Hierarchy) {
  join_v1("/docker/abc");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1000000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "300000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 100000\n");
  EXPECT_EQ(read().memory_left, 800000u);
}

TEST_F(LimitsTest, KnowsHowV1WritesUnlimited) {
  join_v1("/");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().memory_left, 2000000u * 1024);
}

TEST_F(LimitsTest, FindsTheGroupOfAContainerWhoseMountIsItsOwnGroup) {
  join_v1("/docker/abc", "/docker/abc");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  EXPECT_EQ(read().memory_left, 500000u);
}

TEST_F(LimitsTest, FallsBackToTheMountPointForAPathOutsideTheNamespace) {
  join_v2("/../other");
  write("/sys/fs/cgroup/memory.max", "400000\n");
  EXPECT_EQ(read().memory_left, 400000u);
}

TEST_F(LimitsTest, ReadsMountPointsWithBlanks) {
  write("/proc/self/cgroup", "0::/\n");
  write("/proc/self/mountinfo", "30 24 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  write("/my groups/memory.max", "300000\n");
  EXPECT_EQ(read().memory_left, 300000u);
}

TEST_F(LimitsTest, CutsTheProcessorsByAV2Quota) {
  join_v2("/a");
  write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(read().usable_cpus, 0.5);
  write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_GE(read().usable_cpus, 1.0);
}

TEST_F(LimitsTest, CutsTheProcessorsByAV1Quota) {
  join_v1("/a");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "75000\n");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read().usable_cpus, 0.75);
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_GE(read().usable_cpus, 1.0);
}

TEST_F(LimitsTest, FindsTheTightestQuotaAndWhatItsGroupTook) {
  join_v2("/a/b");
  write("/sys/fs/cgroup/a/b/cpu.max", "90000 100000\n");
  write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  const auto quota = read_cpu_quota(root_.string());
  ASSERT_TRUE(quota);
  EXPECT_DOUBLE_EQ(quota->cpus, 0.5);
  EXPECT_FALSE(read_cpu_seconds(*quota));
  write("/sys/fs/cgroup/a/cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
  EXPECT_DOUBLE_EQ(read_cpu_seconds(*quota).value_or(0), 2.5);
}

TEST_F(LimitsTest, ReadsWhatAV1GroupTook) {
  join_v1("/a");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "75000\n");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/a/cpuacct.usage", "3000000000\n");
  EXPECT_DOUBLE_EQ(read_cpu_seconds(read_cpu_quota(root_.string()).value()).value_or(0), 3);
}

TEST_F(LimitsTest, SurvivesAnEmptyRoot) {
  std::filesystem::remove_all(root_);
  EXPECT_FALSE(read().memory_left.has_value());
  EXPECT_GE(read().usable_cpus, 1.0);
}

TEST_F(LimitsTest, ReadsThisMachine) {
  const MachineLimits limits = read_machine_limits();
  EXPECT_GT(limits.memory_left.value_or(0), 0u);
  EXPECT_GT(limits.descriptors_left, 0u);
  EXPECT_GE(limits.usable_cpus, 0.01);
}

}  // namespace
}  // namespace infeed

// Machines are folders of planted files.

#include "infeed/doctor/doctor.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace infeed {
namespace {

/// A healthy machine; each test spoils something.
class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder.write("proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\nCached: 8000000 kB\n");
    folder.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    folder.write("proc/sys/vm/overcommit_memory", "0\n");
    folder.write("proc/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,size=33554432k 0 0\n");
    folder.write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never\n");
    limits("65536", "unlimited");
  }
  void limits(const std::string& files, const std::string& address_space) const {
    folder.write("proc/self/limits",
                 "Limit                     Soft Limit           Hard Limit           Units\n"
                 "Max address space         " +
                     address_space +
                     "  unlimited  bytes\n"
                     "Max open files            " +
                     files +
                     "  1048576  files\n"
                     "Max locked memory         8388608              8388608              bytes\n");
  }
  void join_v2() const {
    folder.write("proc/self/cgroup", "0::/a\n");
    folder.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  }
  [[nodiscard]] DoctorReport examine() const { return examine_machine({.root = folder.str()}); }
  /// What is said about `topic` that mentions `word`.
  [[nodiscard]] const Diagnosis* find(const std::string& topic, const std::string& word) {
    report = examine();
    for (const Diagnosis& d : report.diagnoses) {
      if (d.topic == topic && (d.what + d.advice).find(word) != std::string::npos) return &d;
    }
    return nullptr;
  }
  testing::TempFolder folder;
  DoctorReport report;
};

TEST_F(DoctorTest, ListsFacts) {
  const State facts = examine().facts;
  EXPECT_EQ(facts.get_uint("memory_total"), 64000000ull * 1024);
  EXPECT_EQ(facts.get_uint("shm_bytes"), 32ull << 30);
  EXPECT_EQ(facts.get_string("kernel"), "6.1.0-18-amd64");
  EXPECT_EQ(facts.get_int("gpus"), 0);
}

TEST_F(DoctorTest, FindsNothingBadInAHealthyMachine) {
  for (const Diagnosis& d : examine().diagnoses) EXPECT_EQ(d.topic, "cpu") << d.what;  // this one's own may be few
}

TEST_F(DoctorTest, CountsProcessorsByTheQuotaOfAV2Group) {
  join_v2();
  folder.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  const Diagnosis* found = find("cpu", "quota is 0.5 CPUs");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::kWarning);
  EXPECT_NE(found->advice.find("num_workers of at most 1"), std::string::npos) << found->advice;
}

TEST_F(DoctorTest, CountsProcessorsByTheQuotaOfAV1Group) {
  folder.write("proc/self/cgroup", "1:cpu,cpuacct:/d\n");
  folder.write("proc/self/mountinfo", "32 24 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  folder.write("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "60000\n");
  folder.write("sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n");
  EXPECT_NE(find("cpu", "quota is 0.6 CPUs"), nullptr);
}

TEST_F(DoctorTest, AGroupWithLittleMemoryLeftIsAnError) {
  join_v2();
  folder.write("sys/fs/cgroup/a/memory.max", "200000000\n");
  const Diagnosis* found = find("memory", "memory.max");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::kError);
  EXPECT_EQ(report.exit_code(), 2);
}

TEST_F(DoctorTest, KnowsTheSmallShmOfContainers) {
  folder.write("proc/mounts", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n");
  const Diagnosis* found = find("shm", "64 MiB");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::kNote);
}

TEST_F(DoctorTest, TakesAShareOfTheMemoryForNoSize) {
  folder.write("proc/mounts", "shm /dev/shm tmpfs rw,size=50% 0 0\n");
  EXPECT_EQ(find("shm", ""), nullptr);
}

TEST_F(DoctorTest, CountsProcessesByTheGroupsLimit) {
  join_v2();
  folder.write("sys/fs/cgroup/a/pids.max", "max\n");
  EXPECT_EQ(find("limits", "processes"), nullptr);
  folder.write("sys/fs/cgroup/a/pids.max", "20\n");
  const Diagnosis* found = find("limits", "20 processes and threads");
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->advice.find("--pids-limit"), std::string::npos);
}

TEST_F(DoctorTest, WarnsOfADriverThatIsTooOldForCuda) {
  folder.write("dev/nvidia0", "");
  const std::string module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  ";
  folder.write("proc/driver/nvidia/version", module + "580.65.06  Sun\n");
  EXPECT_EQ(find("gpu", "older than"), nullptr);
  folder.write("proc/driver/nvidia/version", module + "535.104.05  Sun\n");
  EXPECT_NE(find("gpu", "driver 580 or newer"), nullptr);
}

TEST_F(DoctorTest, WarnsOfFewDescriptors) {
  limits("256", "unlimited");
  EXPECT_NE(find("limits", "ulimit -n"), nullptr);
}

TEST_F(DoctorTest, WarnsOfLimitedAddresses) {
  limits("65536", "8589934592");
  const Diagnosis* found = find("limits", "8.0 GiB (RLIMIT_AS)");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::kWarning);
}

TEST_F(DoctorTest, NotesSharedMemoryWithoutHugePages) {
  folder.write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never]\n");
  EXPECT_NE(find("huge_pages", "echo advise"), nullptr);
}

TEST_F(DoctorTest, StrictOvercommitIsAnError) {
  folder.write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_NE(find("memory", "overcommit"), nullptr);
  EXPECT_EQ(report.exit_code(), 2);
}

TEST_F(DoctorTest, AnOldKernelHasNoPidfd) {
  folder.write("proc/sys/kernel/osrelease", "4.19.0-26-amd64\n");
  EXPECT_NE(find("kernel", "pidfd"), nullptr);
}

TEST_F(DoctorTest, WarnsOfOtherLoad) {
  folder.write("proc/pressure/cpu", "some avg10=45.00 avg60=10.00 avg300=5.00 total=1\n");
  EXPECT_NE(find("cpu", "45 % of the last 10 s"), nullptr);
}

TEST_F(DoctorTest, AGpuWithoutADriverIsAnError) {
  folder.write("dev/nvidia0", "");
  const Diagnosis* found = find("gpu", "/dev/nvidia0");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::kError);
}

TEST_F(DoctorTest, ReadsTheDriversVersion) {
  folder.write("dev/nvidia0", "");
  folder.write("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sat Aug 19 01:15:15 UTC 2023\n");
  folder.write("usr/lib/libinfeed_cuda.so", "");
  EXPECT_EQ(examine().facts.get_string("gpu_driver"), "580.65.06");
  EXPECT_EQ(find("gpu", ""), nullptr);
}

TEST_F(DoctorTest, SaysTheWorstFirst) {
  folder.write("proc/sys/vm/overcommit_memory", "2\n");
  folder.write("proc/mounts", "shm /dev/shm tmpfs rw,size=64m 0 0\n");
  const std::string text = examine().str();
  EXPECT_LT(text.find("error    memory"), text.find("note     shm"));
}

TEST_F(DoctorTest, AddsWhatALoaderTells) {
  LoaderStats stats;
  stats.batches = 100;
  stats.samples = 1000;
  stats.elapsed_s = 10;
  stats.wait_s = 8;
  stats.trainer_s = 2;
  stats.decode_us = 10'000;
  stats.num_workers = 1;
  stats.usable_cpus = 8;
  stats.skipped = 3;
  DoctorReport loader;
  examine_loader(stats, loader);
  ASSERT_EQ(loader.diagnoses.size(), 2u);
  EXPECT_EQ(loader.exit_code(), 1);
  EXPECT_EQ(loader.diagnoses[0].what.find("Input-bound"), 0u) << loader.diagnoses[0].what;
}

TEST_F(DoctorTest, ThisMachineCanBeExamined) {
  EXPECT_GT(examine_machine().facts.get_double("cpus_usable"), 0);
  EXPECT_FALSE(examine_machine().to_state().to_json().empty());
}

}  // namespace
}  // namespace infeed

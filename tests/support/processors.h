#pragma once
// Fewer processors than the machine has.

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "memory/cgroup.h"

namespace infeed::testing {

/// This thread, and whoever it starts, on one processor for as long as this lives.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before_)) ++cpu;
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

/// A group of the kernel's with half of a processor, below the one that this process is in; gone with this.
class HalfAProcessor {
 public:
  HalfAProcessor() {
    const auto groups = Cgroups("").of("cpu");
    if (groups.empty()) return;
    folder_ = groups.front().path + "/infeed-test-" + std::to_string(getpid());
    if (mkdir(folder_.c_str(), 0755) != 0) return;
    is_made_ = groups.front().v2 ? write("cpu.max", "50000 100000") : write("cpu.cfs_quota_us", "50000");
  }
  ~HalfAProcessor() { rmdir(folder_.c_str()); }
  HalfAProcessor(const HalfAProcessor&) = delete;
  HalfAProcessor& operator=(const HalfAProcessor&) = delete;

  /// False where there is no right to make one.
  [[nodiscard]] bool is_made() const noexcept { return is_made_; }
  /// The calling process enters it.
  [[nodiscard]] bool enter() const { return write("cgroup.procs", "0"); }

 private:
  [[nodiscard]] bool write(const std::string& name, const std::string& text) const {
    std::ofstream file(folder_ + "/" + name);
    file << text << std::flush;
    return file.good();
  }

  std::string folder_;
  bool is_made_ = false;
};

}  // namespace infeed::testing

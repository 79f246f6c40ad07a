#pragma once
/// What other programs took of the processors that this one may use, while something was measured. Under a cgroup's quota
/// those count that share it: what runs in other containers has no part in it.

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/limits.h"

namespace infeed {

class LoadWatch {
 public:
  /// Begins. `pids`: the processes that are ours. `root` is put in front of /proc and /sys, for tests.
  explicit LoadWatch(const std::vector<std::int64_t>& pids, std::string root = {});
  /// Share of those processors, since the beginning; 0 where the kernel does not tell.
  [[nodiscard]] double others_share() const;
  /// Seconds of CPU that `pids` took since the beginning.
  [[nodiscard]] double our_cpu_s() const;

 private:
  struct Moment {
    double busy_s = 0, all_s = 0, ours_s = 0;
  };
  [[nodiscard]] Moment look() const;

  [[nodiscard]] std::optional<Moment> look_at_group() const;
  void look_at_processors(Moment& moment) const;

  std::string root_;
  std::vector<pid_t> pids_;
  cpu_set_t usable_{};
  std::optional<CpuQuota> quota_;
  Moment begin_;
};

}  // namespace infeed

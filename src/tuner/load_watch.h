#pragma once
/// What other programs took of the processors while something was measured.

#include <cstdint>
#include <vector>

namespace infeed {

class LoadWatch {
 public:
  /// Begins. `pids`: the processes that are ours.
  explicit LoadWatch(std::vector<std::int64_t> pids);
  /// Share of the machine's processors, since the beginning; 0 where the kernel does not tell.
  [[nodiscard]] double others_share() const;
  /// Seconds of CPU that `pids` took since the beginning.
  [[nodiscard]] double our_cpu_s() const;

 private:
  struct Moment {
    double machine_busy_s = 0, machine_all_s = 0, ours_s = 0;
  };
  [[nodiscard]] Moment look() const;

  std::vector<std::int64_t> pids_;
  Moment begin_;
};

}  // namespace infeed

#pragma once
/// What this process and all its descendants use, asked of the kernel, and what the machine is.

#include <chrono>
#include <cstdint>
#include <string>

namespace demo {

/// Proportional set size of this process and its descendants: a page that n of them share counts 1/n in each, so the
/// sum is the memory really taken. 0 where the kernel does not tell.
[[nodiscard]] std::uint64_t tree_pss_bytes();

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Largest tree_pss_bytes() among samples taken a few times a second.
class PeakMemory {
 public:
  /// Cheap unless the last sample is old. `now` takes one in any case.
  void sample(bool now = false);
  [[nodiscard]] std::uint64_t bytes() const { return peak_; }

 private:
  Stopwatch clock_;
  double next_s_ = 0;
  std::uint64_t peak_ = 0;
};

struct Machine {
  int cpus = 0;  ///< that this process may use
  std::string cpu;
  double memory_gib = 0;
  std::string kernel, compiler, version;  ///< Linux's, the demo's, infeed's
};
[[nodiscard]] Machine describe_machine();

}  // namespace demo

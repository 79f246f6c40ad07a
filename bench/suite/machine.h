#pragma once
/// Clocks, who else is on the cores, and what machine this is.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bench {

[[nodiscard]] double wall_s();
[[nodiscard]] double thread_cpu_s();   ///< of the calling thread
[[nodiscard]] double process_cpu_s();  ///< of all threads of this process
/// Of a process that lives; 0 if it does not.
[[nodiscard]] double cpu_s_of(pid_t pid);
/// Resident bytes of this process.
[[nodiscard]] std::uint64_t resident_bytes();

/// Share of the cores that other processes (and the hypervisor) took while it lived. Exact where all children of this
/// process were reaped at both ends.
class ForeignLoad {
 public:
  ForeignLoad();
  [[nodiscard]] double share() const;  ///< 0 to 1

 private:
  double all_s_, busy_s_, own_s_;
};

struct Machine {
  std::string cpu, kernel, compiler, date;
  int cores = 0;
  double memory_gib = 0;
};
[[nodiscard]] Machine this_machine();

}  // namespace bench

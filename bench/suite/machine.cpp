#include "machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

namespace bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double usage_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double own_cpu_s() { return usage_s(RUSAGE_SELF) + usage_s(RUSAGE_CHILDREN); }

struct CoreTimes {
  double all_s = 0, busy_s = 0;
};

// cpu user nice system idle iowait irq softirq steal ...
CoreTimes core_times() {
  std::ifstream file("/proc/stat");
  std::string name;
  std::array<double, 8> ticks{};
  file >> name;
  for (double& tick : ticks) file >> tick;
  const double all = std::accumulate(ticks.begin(), ticks.end(), 0.0);
  const auto hz = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {.all_s = all / hz, .busy_s = (all - ticks[3] - ticks[4]) / hz};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

std::string today() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 16> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

}  // namespace

double wall_s() { return seconds_of(CLOCK_MONOTONIC); }
double thread_cpu_s() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_cpu_s() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

double cpu_s_of(pid_t pid) {
  clockid_t clock = 0;
  return clock_getcpuclockid(pid, &clock) == 0 ? seconds_of(clock) : 0;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

ForeignLoad::ForeignLoad() : all_s_(0), busy_s_(0), own_s_(own_cpu_s()) {
  const CoreTimes times = core_times();
  all_s_ = times.all_s;
  busy_s_ = times.busy_s;
}

double ForeignLoad::share() const {
  const CoreTimes times = core_times();
  const double own = own_cpu_s() - own_s_;
  const double all = times.all_s - all_s_;
  if (all < 0.2) return 0;  // the kernel counts in ticks of 10 ms
  return std::clamp((times.busy_s - busy_s_ - own) / all, 0.0, 1.0);
}

Machine this_machine() {
  utsname names{};
  uname(&names);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {.cpu = cpu_model(),
          .kernel = names.release,
          .compiler = BENCH_COMPILER,
          .date = today(),
          .cores = CPU_COUNT(&cores),
          .memory_gib = bytes / (1 << 30)};
}

}  // namespace bench

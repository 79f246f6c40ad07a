#include "tuner/load_watch.h"

#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace infeed {
namespace {

double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

LoadWatch::LoadWatch(std::vector<std::int64_t> pids) : pids_(std::move(pids)) {
  std::sort(pids_.begin(), pids_.end());
  pids_.erase(std::unique(pids_.begin(), pids_.end()), pids_.end());  // threads' workers are one process
  begin_ = look();
}

// "cpu  user nice system idle iowait irq softirq steal ...", in ticks.
LoadWatch::Moment LoadWatch::look() const {
  constexpr int kFields = 8, kIdle = 3, kIoWait = 4;  // stolen time counts as others'
  Moment moment;
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  const auto tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (int field = 0; field < kFields; ++field) {
    double ticks = 0;
    if (!(file >> ticks)) break;
    moment.machine_all_s += ticks * tick_s;
    if (field != kIdle && field != kIoWait) moment.machine_busy_s += ticks * tick_s;
  }
  for (const std::int64_t pid : pids_) moment.ours_s += cpu_seconds(static_cast<pid_t>(pid));
  return moment;
}

double LoadWatch::our_cpu_s() const { return std::max(0.0, look().ours_s - begin_.ours_s); }

double LoadWatch::others_share() const {
  const Moment now = look();
  const double all = now.machine_all_s - begin_.machine_all_s;
  if (all <= 0) return 0;
  const double others = now.machine_busy_s - begin_.machine_busy_s - (now.ours_s - begin_.ours_s);
  return std::clamp(others / all, 0.0, 1.0);
}

}  // namespace infeed

#include "tuner/load_watch.h"

#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
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

LoadWatch::LoadWatch(const std::vector<std::int64_t>& pids, std::string root)
    : root_(std::move(root)), pids_(pids.begin(), pids.end()), quota_(read_cpu_quota(root_)) {
  CPU_ZERO(&usable_);
  sched_getaffinity(0, sizeof usable_, &usable_);
  std::sort(pids_.begin(), pids_.end());
  pids_.erase(std::unique(pids_.begin(), pids_.end()), pids_.end());  // threads' workers are one process
  begin_ = look();
}

LoadWatch::Moment LoadWatch::look() const {
  Moment moment = look_at_group().value_or(Moment{});
  for (const pid_t pid : pids_) moment.ours_s += cpu_seconds(pid);
  if (moment.all_s == 0) look_at_processors(moment);
  return moment;
}

std::optional<LoadWatch::Moment> LoadWatch::look_at_group() const {
  const auto busy_s = quota_ ? read_cpu_seconds(*quota_) : std::nullopt;
  if (!busy_s) return std::nullopt;
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return Moment{.busy_s = *busy_s, .all_s = quota_->cpus * now.count()};
}

// "cpu3 user nice system idle iowait irq softirq steal ...", in ticks, a line for each processor.
void LoadWatch::look_at_processors(Moment& moment) const {
  constexpr std::size_t kFields = 8, kIdle = 3, kIoWait = 4;  // stolen time counts as others'
  const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream file(root_ + "/proc/stat");
  for (std::string line; std::getline(file, line) && line.rfind("cpu", 0) == 0;) {
    std::istringstream words(line.substr(3));
    std::size_t cpu = 0;
    if (line[3] == ' ' || !(words >> cpu) || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &usable_)) continue;
    double ticks = 0;
    for (std::size_t field = 0; field < kFields && words >> ticks; ++field) {
      moment.all_s += ticks * tick_s;
      if (field != kIdle && field != kIoWait) moment.busy_s += ticks * tick_s;
    }
  }
}

double LoadWatch::our_cpu_s() const { return std::max(0.0, look().ours_s - begin_.ours_s); }

double LoadWatch::others_share() const {
  const Moment now = look();
  const double all = now.all_s - begin_.all_s;
  if (all <= 0) return 0;
  const double others = now.busy_s - begin_.busy_s - (now.ours_s - begin_.ours_s);
  return std::clamp(others / all, 0.0, 1.0);
}

}  // namespace infeed

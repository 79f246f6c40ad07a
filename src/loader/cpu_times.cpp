#include "loader/cpu_times.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

namespace infeed {
namespace {

CpuTimes read_schedstat(const std::string& path) {
  CpuTimes times;
  std::ifstream file(path);
  times.known = static_cast<bool>(file >> times.run_ns >> times.wait_ns);
  return times;
}

bool is_worker(const std::string& thread) {
  std::string name;
  std::ifstream(thread + "/comm") >> name;
  return name.starts_with("infeed:w");
}

template <typename Visit>
void for_each_thread(const std::vector<std::int64_t>& pids, bool all, const Visit& visit) {
  const std::set<std::int64_t> processes(pids.begin(), pids.end());
  for (const std::int64_t pid : processes) {
    const std::string folder = fmt::format("/proc/{}/task", pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), &closedir);
    while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
      const std::string path = folder + "/" + entry->d_name;
      if (entry->d_name[0] == '.') continue;
      if (!all && pid == getpid() && !is_worker(path)) continue;
      visit(static_cast<pid_t>(std::atoi(entry->d_name)), read_schedstat(path + "/schedstat"));
    }
  }
}

std::uint64_t less(std::uint64_t now, std::uint64_t base) { return now - std::min(base, now); }

}  // namespace

CpuTimes cpu_times_of_thread(pid_t thread) {
  return thread > 0 ? read_schedstat(fmt::format("/proc/self/task/{}/schedstat", thread)) : CpuTimes{};
}

// oneTBB's threads serve one pool after another: what they did before is not this one's.
void WorkerCpu::start(const std::vector<std::int64_t>& pids) {
  base_.clear();
  for_each_thread(pids, true, [this](pid_t thread, const CpuTimes& times) { base_.emplace(thread, times); });
}

CpuTimes WorkerCpu::read(const std::vector<std::int64_t>& pids) const {
  CpuTimes sum;
  for_each_thread(pids, false, [&](pid_t thread, const CpuTimes& times) {
    const auto found = base_.find(thread);
    const CpuTimes base = found == base_.end() ? CpuTimes{} : found->second;
    sum.run_ns += less(times.run_ns, base.run_ns);
    sum.wait_ns += less(times.wait_ns, base.wait_ns);
    sum.known = sum.known || times.known;
  });
  return sum;
}

void fill_cpu_shares(LoaderStats& stats, const CpuTimes& workers, std::uint64_t busy_ns, const CpuTimes& trainer,
                     const CpuTimes& trainer_base) {
  if (workers.known && busy_ns > 0) {
    stats.on_cpu_share = std::min(1.0, static_cast<double>(workers.run_ns) / static_cast<double>(busy_ns));
    stats.cpu_queue_share = std::min(1.0, static_cast<double>(workers.wait_ns) / static_cast<double>(busy_ns));
  }
  if (!trainer.known || stats.elapsed_s <= 0) return;
  const double queued_s = static_cast<double>(less(trainer.wait_ns, trainer_base.wait_ns)) * 1e-9;
  stats.trainer_cpu_queue_share = std::min(1.0, queued_s / stats.elapsed_s);
}

double seconds_in_hand(std::uint64_t claimed_ns, std::uint64_t now_ns) noexcept {
  return claimed_ns == 0 || claimed_ns > now_ns ? 0 : static_cast<double>(now_ns - claimed_ns) * 1e-9;
}

bool is_stopped(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t end = text.rfind(')');  // of the name, which may hold anything
  const char state = end != std::string::npos && end + 2 < text.size() ? text[end + 2] : '\0';
  return state == 'T' || state == 't';
}

}  // namespace infeed

#include "infeed/tuner/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "infeed/base/error.h"

// The busiest station sets the pace (the utilisation law): each takes its time a sample, and the largest is the cycle. What
// nothing overlaps is added: handing over, waits for uneven batches, and what workers cost each other.

namespace infeed {
namespace {

void check(const PipelineCosts& c) {
  const double costs[] = {c.sample_s,     c.cpu_share,  c.step_s,       c.trainer_cpus, c.hand_over_s, c.copy_s,
                          c.unevenness_s, c.base_bytes, c.worker_bytes, c.batch_bytes,  c.crosstalk_s};
  const bool negative = std::any_of(std::begin(costs), std::end(costs), [](double cost) { return !(cost >= 0); });
  if (negative || !(c.usable_cpus > 0) || !(c.pageable_factor >= 1))
    throw ConfigError(
        fmt::format("a cost is negative, usable_cpus is not above 0, or pageable_factor below 1:\n{}", c.str()));
  if (c.sample_s + c.step_s + c.copy_s <= 0)
    throw ConfigError("nothing costs any time: give sample_s, step_s or copy_s.");
}

double memory(const PipelineCosts& c, const WorkerSetting& setting) {
  const double processes = setting.processes() ? setting.workers : 0;
  const double batches = setting.claimants() > 0 ? setting.depth() : 1;
  return c.base_bytes + c.worker_bytes * processes + c.batch_bytes * batches;
}

struct Pace {
  double cycle_s = 0;
  Station station = Station::kTrainer;
};

// The caller does the work, then its step.
Pace serial(const PipelineCosts& c) {
  return {c.sample_s + c.step_s, c.sample_s > c.step_s ? Station::kWorkers : Station::kTrainer};
}

Pace overlapped(const PipelineCosts& c, const WorkerSetting& setting, double copy_s) {
  const int readers = std::max(1, setting.claimants());  // without workers the thread that queues the copies reads
  const double turn_s = c.step_s + c.hand_over_s + (setting.pinned ? 0 : copy_s);
  const double cpu_s = c.sample_s * c.cpu_share + c.step_s * c.trainer_cpus + c.hand_over_s;
  const std::array<std::pair<double, Station>, 4> stations = {std::pair{turn_s, Station::kTrainer},
                                                              {copy_s, Station::kCopies},
                                                              {c.sample_s / readers, Station::kWorkers},
                                                              {cpu_s / c.usable_cpus, Station::kProcessors}};
  const auto busiest = *std::max_element(stations.begin(), stations.end(),
                                         [](const auto& a, const auto& b) { return a.first < b.first; });
  const double others_go_on = (1 + 1.0 / readers) / 2;  // while one is at a costly sample
  return {busiest.first + c.unevenness_s * others_go_on / setting.depth() + c.crosstalk_s * readers, busiest.second};
}

}  // namespace

int WorkerSetting::claimants() const noexcept {
  return kind == WorkerKind::kInline ? 0 : workers * std::max(1, threads);
}
int WorkerSetting::depth() const noexcept { return std::max(1, prefetch > 0 ? prefetch : 2 * workers); }
bool WorkerSetting::processes() const noexcept { return kind == WorkerKind::kFork || kind == WorkerKind::kSpawn; }

std::string WorkerSetting::str() const {
  if (claimants() == 0) return pinned ? "inline" : "inline, pageable";
  std::string text = fmt::format("{} x {}", to_string(kind), workers);
  if (threads > 1) text += fmt::format(", {} threads each", threads);
  if (prefetch > 0) text += fmt::format(", prefetch {}", prefetch);
  if (!pinned) text += ", pageable";
  return text;
}

State WorkerSetting::to_state() const {
  State state;
  state.set("worker_kind", to_string(kind));
  state.set("num_workers", workers);
  state.set("threads_per_worker", threads);
  state.set("prefetch", prefetch);
  state.set("pinned", pinned);
  return state;
}

std::string PipelineCosts::str() const {
  return fmt::format(
      "sample      {:10.1f} us  a worker's time for a sample, {:.0f} % of it on a processor\n"
      "step        {:10.1f} us  the trainer's, a sample; it keeps {:.1f} CPUs busy\n"
      "hand-over   {:10.1f} us  a sample, beside nothing\n"
      "copy        {:10.1f} us  a sample, page-locked; {:.1f} times that from pageable memory\n"
      "unevenness  {:10.1f} us  a sample with one worker, divided by the batches in flight\n"
      "crosstalk   {:10.2f} us  a sample, for each worker\n"
      "processors  {:10.1f}     usable\n"
      "memory      {:10.0f} MB  without workers, {:.0f} MB a worker process, {:.1f} MB a batch in flight\n",
      sample_s * 1e6, cpu_share * 100, step_s * 1e6, trainer_cpus, hand_over_s * 1e6, copy_s * 1e6, pageable_factor,
      unevenness_s * 1e6, crosstalk_s * 1e6, usable_cpus, base_bytes / 1e6, worker_bytes / 1e6, batch_bytes / 1e6);
}

State PipelineCosts::to_state() const {
  State state;
  const std::pair<const char*, double> fields[] = {{"sample_s", sample_s},
                                                   {"cpu_share", cpu_share},
                                                   {"step_s", step_s},
                                                   {"trainer_cpus", trainer_cpus},
                                                   {"hand_over_s", hand_over_s},
                                                   {"copy_s", copy_s},
                                                   {"pageable_factor", pageable_factor},
                                                   {"unevenness_s", unevenness_s},
                                                   {"crosstalk_s", crosstalk_s},
                                                   {"usable_cpus", usable_cpus},
                                                   {"base_bytes", base_bytes},
                                                   {"worker_bytes", worker_bytes},
                                                   {"batch_bytes", batch_bytes}};
  for (const auto& [name, value] : fields) state.set(name, value);
  return state;
}

const char* to_string(Station station) noexcept {
  switch (station) {
    case Station::kWorkers: return "workers";
    case Station::kProcessors: return "processors";
    case Station::kCopies: return "copies";
    case Station::kTrainer: return "trainer";
  }
  return "unknown";
}

Prediction predict(const PipelineCosts& costs, const WorkerSetting& setting) {
  check(costs);
  const double copy_s = costs.copy_s * (setting.pinned ? 1 : costs.pageable_factor);
  const Pace pace = setting.claimants() == 0 && copy_s <= 0 ? serial(costs) : overlapped(costs, setting, copy_s);
  return {.samples_per_s = 1 / pace.cycle_s,
          .memory_bytes = memory(costs, setting),
          .utilisation = costs.step_s / pace.cycle_s,
          .copy_share = copy_s / pace.cycle_s,
          .station = pace.station};
}

}  // namespace infeed

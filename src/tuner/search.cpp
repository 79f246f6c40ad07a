#include "tuner/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/phrase.h"
#include "infeed/base/error.h"
#include "tuner/median.h"

namespace infeed {
namespace {

constexpr int kMostDoublings = 3;      // of the depth
constexpr double kInProportion = 1.5;  // a doubling that gave less may owe it to the deeper queue
constexpr double kRising = 1.3;        // a doubling that gave so much has not reached the flat part

/// Smaller settings first: what they take of the machine.
auto size_of(const Trial& trial) {
  return std::tuple(trial.setting.claimants(), trial.setting.depth(), trial.memory_bytes);
}

bool slower(const Trial& a, const Trial& b) { return a.samples_per_s < b.samples_per_s; }

}  // namespace

Search::Search(const Measure& measure, const TuneOptions& options)
    : measure_(measure),
      options_(options),
      form_{.kind = options.kinds.front(), .threads = options.threads, .pinned = options.pinned} {}

void Search::run() {
  climb();
  look_above();
  refine();
  deepen();
  try_other_kinds();
  confirm();
}

WorkerSetting Search::workers(int count) const {
  if (count == 0) return {.kind = WorkerKind::kInline, .pinned = form_.pinned};
  WorkerSetting setting = form_;
  setting.workers = count;
  return setting;
}

// The serial run tells what a worker and the trainer take; far fewer workers than balance the two need no trial.
int Search::first_count() const {
  if (options_.memory_budget > 0) return 1;  // what a worker takes is not known yet
  if (trials_.empty() || trials_.front().utilisation <= 0) return 1;
  const double needed = (1 - trials_.front().utilisation) / trials_.front().utilisation / options_.threads;
  const double first = std::min(needed, options_.usable_cpus) / 4;
  int count = 1;
  while (2 * count <= first) count *= 2;
  return std::min(count, options_.max_workers);
}

void Search::climb() {
  double best = 0;
  if (const Trial* serial = look(workers(0))) best = serial->samples_per_s;
  int before = 0;
  for (int count = first_count(); !spent(); count = std::min(2 * count, options_.max_workers)) {
    while (count > before + 1 && !fits(workers(count))) --count;
    const Trial* trial = look(workers(count));
    if (trial == nullptr) break;
    const double rate = trial->samples_per_s;
    // One worker may be slower than none and two the fastest.
    if (rate <= best * (1 + options_.tolerance) && count > 1) break;
    if (before > 0 && rate < best * kInProportion && depth_helps_as_much(before, *trial)) break;
    best = std::max(best, rate);
    if (count == options_.max_workers || count == before) break;
    before = count;
  }
}

// More workers have more batches in flight. Where that alone was it, the queue is to grow and not the workers.
bool Search::depth_helps_as_much(int fewer, const Trial& trial) {
  if (depth_was_asked_) return false;
  depth_was_asked_ = true;
  const double rate = trial.samples_per_s;
  WorkerSetting deeper = workers(fewer);
  deeper.prefetch = 2 * trial.setting.depth();
  const Trial* deep = look(deeper);
  if (deep == nullptr || deep->samples_per_s < rate * (1 - options_.tolerance)) return false;
  form_.prefetch = deeper.prefetch;
  return true;
}

// Between the last count that is too slow and the first that is fast enough: by turns in the middle, where a peak may
// lie, and where the rate would be reached if it rose in proportion.
void Search::refine() {
  for (bool in_the_middle = true; !spent() && !merged_.empty(); in_the_middle = !in_the_middle) {
    const Trial found = chosen();
    const Trial* below = slower_below(found.setting.workers);
    const int low = below == nullptr ? 0 : below->setting.workers, high = found.setting.workers;
    if (high - low <= 1) return;
    int middle = (low + high) / 2;
    if (below != nullptr && !in_the_middle) {
      const double target = fastest().samples_per_s * (1 - options_.tolerance);
      middle = static_cast<int>(std::ceil(low * target / below->samples_per_s));
    }
    middle = std::clamp(middle, low + 1, high - 1);
    if (look(workers(middle)) == nullptr) return;
  }
}

const Trial* Search::slower_below(int count) const {
  const Trial* below = nullptr;
  for (const Trial& trial : merged_) {
    const WorkerSetting& setting = trial.setting;
    if (!trial.refused.empty() || setting.claimants() == 0 || setting.prefetch != form_.prefetch) continue;
    if (setting.workers >= count || as_fast(trial)) continue;
    if (below == nullptr || setting.workers > below->setting.workers) below = &trial;
  }
  return below;
}

// Where the rate still rose and twice the workers are too many, the best may lie between.
void Search::look_above() {
  if (merged_.empty() || spent()) return;
  const Trial best = fastest();
  const int count = best.setting.workers;
  const auto ran = [this](int workers_run, const auto& test) {
    return std::any_of(merged_.begin(), merged_.end(),
                       [&](const Trial& trial) { return trial.setting.workers == workers_run && test(trial); });
  };
  const bool rose =
      ran(count / 2, [&](const Trial& trial) { return trial.samples_per_s * kRising < best.samples_per_s; });
  const bool fell = ran(2 * count, [&](const Trial& trial) { return trial.refused.empty(); });
  if (count >= 2 && rose && fell) look(workers(count + count / 2));
}

void Search::deepen() {
  for (int doubling = 0; doubling < kMostDoublings && !spent(); ++doubling) {
    if (merged_.empty()) return;
    const Trial before = chosen();
    if (before.setting.claimants() == 0) return;
    WorkerSetting deeper = before.setting;
    deeper.prefetch = 2 * deeper.depth();
    const Trial* trial = look(deeper);
    if (trial == nullptr || trial->samples_per_s <= before.samples_per_s * (1 + options_.tolerance)) return;
    form_.prefetch = deeper.prefetch;
    refine();  // fewer workers may do now
  }
}

void Search::try_other_kinds() {
  for (std::size_t i = 1; i < options_.kinds.size() && !spent() && !merged_.empty(); ++i) {
    WorkerSetting setting = chosen().setting;
    if (setting.claimants() == 0) return;
    setting.kind = options_.kinds[i];
    WorkerSetting one = setting;
    one.workers = 1;
    if (options_.memory_budget > 0) look(one);  // what a worker of this kind takes is not known yet
    look(setting);
  }
}

// Where runs of a setting differ by more than what is at stake, or nobody knows, those that the choice hangs on run again,
// by turns.
void Search::confirm() {
  const bool sure = std::none_of(trials_.begin(), trials_.end(), [this](const Trial& trial) {
    return trial.refused.empty() && (trial.runs == 1 || trial.spread > options_.tolerance / 2);
  });
  if (sure || merged_.empty()) return;
  for (int again = 0; again < 2 && !spent(); ++again) {
    const WorkerSetting quickest = fastest().setting;
    record(quickest);
    if (!spent() && !(chosen().setting == quickest)) record(chosen().setting);
  }
}

const Trial* Search::look(const WorkerSetting& setting) {
  const auto same = [&](const Trial& trial) { return trial.setting == setting; };
  if (std::none_of(merged_.begin(), merged_.end(), same)) {
    if (spent() || !fits(setting)) return nullptr;
    record(setting);
  }
  const auto found = std::find_if(merged_.begin(), merged_.end(), same);
  return found != merged_.end() && found->refused.empty() ? &*found : nullptr;
}

void Search::record(const WorkerSetting& setting) {
  Trial trial;
  try {
    trial = measure_(setting);
    if (!(trial.samples_per_s > 0)) trial.refused = "it gave no sample";
  } catch (const MemoryError& error) {
    trial.refused = phrase(error.what());
  } catch (const ConfigError& error) {
    trial.refused = phrase(error.what());
  } catch (const WorkerError& error) {  // as of workers that the system had no memory for
    trial.refused = phrase(error.what());
  }
  if (trial.stopped) {
    stopped_ = true;
    return;
  }
  trial.setting = setting;
  const auto budget = static_cast<double>(options_.memory_budget);
  if (budget > 0 && trial.memory_bytes > budget)
    trial.refused = fmt::format("it took {:.0f} MB, the budget is {:.0f} MB", trial.memory_bytes / 1e6, budget / 1e6);
  trials_.push_back(trial);
  std::erase_if(merged_, [&](const Trial& other) { return other.setting == setting; });
  merged_.push_back(merged(setting));
}

Trial Search::merged(const WorkerSetting& setting) const {
  Trial sum{.setting = setting, .runs = 0};
  std::vector<double> rates;
  for (const Trial& trial : trials_) {
    if (!(trial.setting == setting)) continue;
    rates.push_back(trial.samples_per_s);
    sum.runs += trial.runs;
    sum.spread = std::max(sum.spread, trial.spread);
    sum.memory_bytes = std::max(sum.memory_bytes, trial.memory_bytes);
    sum.others_share = std::max(sum.others_share, trial.others_share);
    sum.utilisation += trial.utilisation;
    if (!trial.refused.empty()) sum.refused = trial.refused;
  }
  const auto count = static_cast<double>(rates.size());
  sum.samples_per_s = std::accumulate(rates.begin(), rates.end(), 0.0) / count;
  sum.spread = std::max(sum.spread, spread(rates));
  sum.utilisation /= count;
  return sum;
}

std::vector<Trial> Search::candidates() const {
  if (merged_.empty() && stopped_) throw Error("the search was stopped before its first trial was done.");
  std::vector<Trial> able;
  std::copy_if(merged_.begin(), merged_.end(), std::back_inserter(able),
               [](const Trial& trial) { return trial.refused.empty(); });
  if (able.empty())
    throw ConfigError(
        fmt::format("no setting could run: {}.{}", merged_.empty() ? "none was tried" : merged_.back().refused,
                    options_.memory_budget > 0 ? " Raise the memory budget, or make smaller batches." : ""));
  return able;
}

Trial Search::fastest() const {
  const std::vector<Trial> able = candidates();
  return *std::max_element(able.begin(), able.end(), slower);
}

bool Search::as_fast(const Trial& trial) const {
  return trial.samples_per_s >= fastest().samples_per_s * (1 - options_.tolerance);
}

Trial Search::chosen() const {
  std::vector<Trial> able = candidates();
  std::erase_if(able, [this](const Trial& trial) { return !as_fast(trial); });
  return *std::min_element(able.begin(), able.end(),
                           [](const Trial& a, const Trial& b) { return size_of(a) < size_of(b); });
}

// By the steepest slope that this kind has shown: rather too much than too little.
double Search::foreseen_bytes(const WorkerSetting& setting) const {
  double slope = 0;
  const Trial* nearest = nullptr;
  for (const Trial& trial : merged_) {
    if (trial.memory_bytes <= 0 || trial.setting.workers > setting.workers) continue;
    if (trial.setting.claimants() > 0 && trial.setting.kind != setting.kind) continue;
    if (nearest != nullptr && trial.setting.workers != nearest->setting.workers)
      slope = std::max(
          slope, (trial.memory_bytes - nearest->memory_bytes) / (trial.setting.workers - nearest->setting.workers));
    if (nearest == nullptr || trial.setting.workers >= nearest->setting.workers) nearest = &trial;
  }
  if (nearest == nullptr) return 0;
  const int batches = std::max(0, setting.depth() - nearest->setting.depth());
  return nearest->memory_bytes + slope * (setting.workers - nearest->setting.workers) +
         static_cast<double>(options_.batch_bytes) * batches;
}

bool Search::fits(const WorkerSetting& setting) const {
  return options_.memory_budget == 0 || foreseen_bytes(setting) <= static_cast<double>(options_.memory_budget);
}

}  // namespace infeed

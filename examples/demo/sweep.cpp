#include "sweep.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "console.h"
#include "infeed/train/tensor/allocator.h"
#include "measure.h"
#include "model.h"
#include "stop.h"
#include "train.h"

namespace demo {
namespace {

using infeed::WorkerKind;

constexpr int kModelWidth = 16;    // half of the trained one's: a lighter step makes feeding matter
constexpr int kWarmUpBatches = 4;  // then prefetch, caches and every worker's pages are warm
constexpr double kNoise = 0.05;    // smaller differences of rate are none
constexpr double kBusy = 0.9;      // shares above this count as "all"
constexpr const char* kHead = "  kind    workers   samples/s   CPU us/sample   PSS MB   first batch ms   utilisation";

// A trainer that takes batches without an end, and counts.
class Job {
 public:
  Job(infeed::Loader& loader, Trainer& trainer) : loader_(loader), trainer_(trainer) {}

  void take_batch() {
    auto batch = loader_.next();
    if (!batch) batch = loader_.next();  // the next epoch's first
    const Stopwatch compute;
    trainer_.step(batch.value());
    compute_s_ += compute.seconds();
    samples_ += batch->size();
    stop_if_asked();
  }
  void start_counting() {
    samples_ = 0;
    compute_s_ = 0;
  }
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] double compute_s() const { return compute_s_; }

 private:
  infeed::Loader& loader_;
  Trainer& trainer_;
  std::int64_t samples_ = 0;
  double compute_s_ = 0;
};

// What earlier rows left in the heap; a fork would share it, then copy it.
void forget_earlier_rows() {
  infeed::host_allocator().empty_cache();
  malloc_trim(0);
}

// As a program would do it: first the loader, then the model.
SweepRow measure(const infeed::ImageFolder& dataset, SweepRow row, const SweepOptions& options) {
  forget_earlier_rows();
  const Stopwatch start;
  infeed::Loader loader(dataset, training_loader(row.kind, row.workers, options.seed));
  { const auto first = loader.next(); }
  row.first_batch_ms = start.seconds() * 1e3;
  Trainer trainer({.classes = static_cast<int>(dataset.classes().size()), .width = kModelWidth, .seed = options.seed});
  Job job(loader, trainer);
  for (int i = 0; i < kWarmUpBatches; ++i) job.take_batch();
  job.start_counting();
  const double machine_before = machine_cpu_seconds(), cpu_before = tree_cpu_seconds();
  const Stopwatch window;
  while (window.seconds() < options.row_seconds) job.take_batch();
  const double seconds = window.seconds();
  const double cpu = tree_cpu_seconds() - cpu_before;
  const double others = machine_cpu_seconds() - machine_before - cpu;
  const auto samples = static_cast<double>(job.samples());
  row.samples_per_s = samples / seconds;
  row.cpu_us_per_sample = cpu / samples * 1e6;
  row.utilisation = job.compute_s() / seconds;
  row.others_share = std::clamp(others / seconds / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), 0.0, 1.0);
  row.pss_mb = static_cast<double>(tree_pss_bytes()) / 1e6;
  return row;
}

std::vector<SweepRow> list_settings(const SweepOptions& options) {
  std::vector<SweepRow> rows = {{.kind = WorkerKind::kInline, .workers = 0}};
  for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn}) {
    for (const int workers : options.workers) rows.push_back({.kind = kind, .workers = workers});
  }
  return rows;
}

void print(const SweepRow& row) {
  say(fmt::format("  {:<6}  {:>7}   {:>9.0f}   {:>13.0f}   {:>6.0f}   {:>14.0f}   {:>9.1f} %",
                  infeed::to_string(row.kind), row.workers, row.samples_per_s, row.cpu_us_per_sample, row.pss_mb,
                  row.first_batch_ms, row.utilisation * 100));
}

// What keeps the chosen row from being faster.
std::string limit_of(const SweepRow& row, int cpus) {
  const double cpu_share = row.samples_per_s * row.cpu_us_per_sample / 1e6 / cpus;
  const double busy = row.utilisation * 100;
  if (cpu_share >= kBusy) {
    return fmt::format("the {} cores are {:.0f} % busy, so the machine is the limit, and more workers cannot help",
                       cpus, cpu_share * 100);
  }
  if (row.utilisation >= kBusy) {
    return fmt::format("the trainer computes {:.0f} % of the time, so it is the limit, and more workers cannot help",
                       busy);
  }
  return fmt::format("the trainer waits {:.0f} % of the time for data while this program has {:.0f} % of the {} cores",
                     100 - busy, cpu_share * 100, cpus);
}

// Figures that others have disturbed say so.
void warn_of_others(const std::vector<SweepRow>& rows) {
  double sum = 0;
  for (const SweepRow& row : rows) sum += row.others_share;
  const double share = sum / static_cast<double>(rows.size());
  if (share < kNoise) return;
  say(fmt::format(
      "  Other programs had {:.0f} % of the cores meanwhile: these rates are too low, and rows differ by chance.",
      share * 100));
}

}  // namespace

std::vector<SweepRow> sweep(const SweepOptions& options) {
  const infeed::ImageFolder dataset = open_training_set(options.data + "/train");
  std::vector<SweepRow> rows = list_settings(options);
  say(kHead);
  for (SweepRow& row : rows) {
    {
      ProgressLine progress;
      progress.update(fmt::format("measuring {} ...", setting_text(row)));
      row = measure(dataset, row, options);
    }
    print(row);
  }
  warn_of_others(rows);
  return rows;
}

Recommendation recommend(const std::vector<SweepRow>& rows, int cpus) {
  const auto slower = [](const SweepRow& a, const SweepRow& b) { return a.samples_per_s < b.samples_per_s; };
  const SweepRow fastest = *std::max_element(rows.begin(), rows.end(), slower);
  SweepRow best = fastest;
  for (const SweepRow& row : rows) {
    const bool fast = row.samples_per_s >= fastest.samples_per_s * (1 - kNoise);
    if (fast && std::tie(row.workers, row.pss_mb) < std::tie(best.workers, best.pss_mb)) best = row;
  }
  const bool same = best.kind == fastest.kind && best.workers == fastest.workers;
  const std::string rank =
      same ? "the fastest here"
           : fmt::format("within {:.0f} % of the fastest ({}: {:.0f}/s) with the fewest workers and the least memory",
                         kNoise * 100, setting_text(fastest), fastest.samples_per_s);
  return {best, fmt::format("{:.0f} samples/s in {:.0f} MB, {}; {}", best.samples_per_s, best.pss_mb, rank,
                            limit_of(best, cpus))};
}

std::string setting_text(const SweepRow& row) {
  if (row.kind == WorkerKind::kInline) return "inline";
  return fmt::format("{} x {}", infeed::to_string(row.kind), row.workers);
}

}  // namespace demo

#include "infeed/loader/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "infeed/loader/stats.h"

// The rules stand in the order in which they are asked: faults that explain everything else come first, then what a
// pipeline without faults is bound by. docs/tuning.md tells them with their numbers.

namespace infeed {
namespace {

constexpr std::uint64_t kFewestBatches = 8;  // one late batch of fewer says nothing
constexpr double kSmall = 0.05;              // of the time: not worth a knob
constexpr double kMuch = 0.25;               // of the time: a fault of its own
constexpr double kMostly = 0.5;
constexpr double kNearlyAll = 0.9;
constexpr double kUneven = 0.6;               // of what is lost, on a tenth of the batches; evenly it were 0.1
constexpr double kSlow = 2.5;                 // times as long a sample as the others
constexpr std::uint64_t kSamplesToJudge = 8;  // of a worker
constexpr double kSilent_s = 5;
constexpr double kSilentRuns = 20;  // times the mean
constexpr int kMostWorkers = 64;

/// Both sets of figures as one pipeline.
struct Case {
  const LoaderStats& loader;
  const StagerStats* stager = nullptr;
  double lost = 0;      ///< share of the time that the trainer had no batch
  double step_s = 0;    ///< the trainer's own time for a batch
  double sample_s = 0;  ///< a worker's time for a sample
  double batch_rows = 1;

  Case(const LoaderStats& given, const StagerStats* staged) : loader(given), stager(staged) {
    const auto batches = static_cast<double>(std::max<std::uint64_t>(1, given.batches));
    batch_rows = std::max(1.0, static_cast<double>(given.samples) / batches);
    sample_s = (given.read_us + given.decode_us + given.transform_us + given.collate_us + given.other_us) * 1e-6;
    if (staged != nullptr) {
      lost = staged->starved_share;
      step_s = staged->elapsed_s * (1 - lost) / static_cast<double>(std::max<std::uint64_t>(1, staged->batches));
    } else if (given.elapsed_s > 0) {
      lost = std::min(1.0, (given.wait_s + given.sampler_s) / given.elapsed_s);
      step_s = given.trainer_s / batches;
    }
  }
  [[nodiscard]] int claimants() const { return std::max(1, loader.num_workers * loader.threads_per_worker); }
  [[nodiscard]] bool computes() const {  // or would, if there were a processor
    return loader.on_cpu_share < 0 || loader.on_cpu_share + std::max(0.0, loader.cpu_queue_share) >= kMostly;
  }
  /// Workers that make batches as fast as the trainer takes them.
  [[nodiscard]] int workers_needed() const {
    const double work_s = sample_s * batch_rows / loader.threads_per_worker;
    if (step_s <= 0 || work_s / step_s >= kMostWorkers) return kMostWorkers;
    return std::max(1, static_cast<int>(std::ceil(work_s / step_s)));
  }
  /// Workers that still add speed.
  [[nodiscard]] int workers_possible() const {
    if (!computes()) return kMostWorkers;
    return std::clamp(static_cast<int>(loader.usable_cpus / loader.threads_per_worker), 1, kMostWorkers);
  }
};

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string workers_text(int workers) {
  return workers == 0 ? "the caller itself" : fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
}

Knob knob(const char* option, double value) { return {option, fmt::format("{:.0f}", value)}; }

/// By the name that the loader's user knows.
Knob prefetch_knob(const LoaderStats& loader, double batches) {
  if (loader.prefetch_factor == 0) return knob("prefetch", batches);
  return knob("prefetch_factor", std::ceil(batches / std::max(1, loader.num_workers)));
}

std::string setting(const Knob& knob) { return knob.option + "=" + knob.value; }

std::string waited(const Case& c) { return fmt::format("the trainer waited for data {} of the time", percent(c.lost)); }

struct Stage {
  Cause cause;
  const char* doing;
  double us;
};

Stage heaviest_stage(const LoaderStats& loader) {
  const std::array<Stage, 5> stages = {Stage{Cause::kRead, "read", loader.read_us},
                                       {Cause::kDecode, "decode", loader.decode_us},
                                       {Cause::kTransform, "transform", loader.transform_us},
                                       {Cause::kCollate, "collate", loader.collate_us},
                                       {Cause::kDataset, "read samples", loader.other_us}};
  return *std::max_element(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) { return a.us < b.us; });
}

const char* make_cheaper(Cause cause) {
  switch (cause) {
    case Cause::kRead:
      return "Read less or nearer: a local copy, fewer and larger files, files that fit the page cache.";
    case Cause::kDecode:
      return "Make a sample cheaper: `infeed prepare`, decode with exact=false, a cache of planes, smaller pictures.";
    case Cause::kTransform: return "Make a sample cheaper: smaller outputs, uint8 outputs, normalise on the device.";
    case Cause::kCollate:
      return "Make the collate cheaper: samples of one shape need none, buckets pad less; do its work in the dataset.";
    default: return "Make the dataset's read() cheaper: a profiler on one worker tells where.";
  }
}

// --- faults -----------------------------------------------------------------------------------------------------------

std::optional<Verdict> stopped_worker(const Case& c) {
  for (const WorkerStats& worker : c.loader.workers) {
    const double usual_s = worker.samples > 0 ? worker.busy_s / static_cast<double>(worker.samples) * c.batch_rows : 0;
    const bool silent = worker.in_hand_s > std::max(kSilent_s, kSilentRuns * usual_s);
    if (!worker.stopped && !silent) continue;
    Verdict verdict{.bound = Bound::kInput, .cause = Cause::kStoppedWorker, .share = c.lost};
    verdict.finding = fmt::format(
        "Input-bound: worker {} (pid {}) {}; {}.", worker.id, worker.pid,
        worker.stopped ? "is stopped" : fmt::format("has been at one sample for {}", time_text(worker.in_hand_s)),
        waited(c));
    verdict.advice = worker.stopped
                         ? fmt::format("Continue it: kill -CONT {}.", worker.pid)
                         : "Look at what it reads; timeout_ms makes such a wait an error that names the sample.";
    if (!worker.stopped) verdict.knobs = {knob("timeout_ms", 60'000)};
    return verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> trainer_starved(const Case& c) {
  if (c.loader.trainer_cpu_queue_share < kMuch || c.loader.num_workers < 2) return std::nullopt;
  const int fewer = std::max(1, std::min(c.loader.num_workers - 1, c.workers_possible() - 1));
  return Verdict{
      .bound = Bound::kCompute,
      .cause = Cause::kTrainerStarved,
      .share = c.loader.trainer_cpu_queue_share,
      .finding = fmt::format("Compute-bound, for want of processors: the trainer's thread queued for one {} of "
                             "the time, behind {} on {:.1f} CPUs.",
                             percent(c.loader.trainer_cpu_queue_share), workers_text(c.loader.num_workers),
                             c.loader.usable_cpus),
      .advice = fmt::format("num_workers={} leaves the trainer its own.", fewer),
      .knobs = {knob("num_workers", fewer)}};
}

std::optional<Verdict> small_budget(const Case& c) {
  const LoaderStats& s = c.loader;
  if (s.short_of_memory_share < kMuch &&
      static_cast<double>(s.private_copies) < kMostly * static_cast<double>(s.batches))
    return std::nullopt;
  Verdict verdict{.bound = Bound::kInput, .cause = Cause::kMemoryBudget, .share = c.lost};
  verdict.finding = fmt::format(
      "Input-bound: {}, because memory let fewer than prefetch={} batches be in flight for {} "
      "of the batches; {} are held by the user.",
      waited(c), s.prefetch, percent(s.short_of_memory_share), s.batches_held);
  verdict.advice =
      s.memory_limit > 0 ? "Raise memory_limit, or drop batches sooner." : "Drop batches sooner, or make them smaller.";
  if (s.memory_limit > 0)
    verdict.knobs = {knob("memory_limit", static_cast<double>(s.memory_limit) * (s.prefetch + s.batches_held + 2) /
                                              std::max(1, s.batches_held + 1))};
  return verdict;
}

std::optional<Verdict> oversubscribed(const Case& c) {
  const LoaderStats& s = c.loader;
  if (s.cpu_queue_share < kMuch || c.claimants() <= s.usable_cpus) return std::nullopt;
  const int fit = c.workers_possible();
  return Verdict{
      .bound = Bound::kInput,
      .cause = Cause::kOversubscribed,
      .share = c.lost,
      .finding = fmt::format("Input-bound: {}; {} share {:.1f} CPUs and queued for one {} of their busy time.",
                             waited(c), workers_text(c.claimants()), s.usable_cpus, percent(s.cpu_queue_share)),
      .advice = fmt::format("num_workers={} does the same work with less memory and fewer switches. {}", fit,
                            make_cheaper(heaviest_stage(s).cause)),
      .knobs = {knob("num_workers", fit)}};
}

std::optional<Verdict> slow_worker(const Case& c) {
  std::vector<std::pair<double, int>> pace;  // seconds a sample, worker
  for (const WorkerStats& worker : c.loader.workers) {
    if (worker.samples >= kSamplesToJudge)
      pace.emplace_back(worker.busy_s / static_cast<double>(worker.samples), worker.id);
  }
  if (pace.size() < 2) return std::nullopt;
  std::sort(pace.begin(), pace.end());
  const double usual = pace[(pace.size() - 1) / 2].first;
  const auto [slowest, id] = pace.back();
  const double next_slowest = pace[pace.size() - 2].first;
  if (slowest < kSlow * usual || slowest < kSlow * next_slowest) return std::nullopt;
  return Verdict{.bound = Bound::kInput,
                 .cause = Cause::kSlowWorker,
                 .share = c.lost,
                 .finding = fmt::format("Input-bound: {}; worker {} takes {} a sample, the others {}.", waited(c), id,
                                        time_text(slowest), time_text(usual)),
                 .advice = "Look at what is different there: its processor (cpu_affinity), its disk, its worker_init."};
}

// --- bounds -----------------------------------------------------------------------------------------------------------

Verdict compute_bound(const Case& c) {
  const double own = c.stager != nullptr      ? 1 - c.lost
                     : c.loader.elapsed_s > 0 ? c.loader.trainer_s / c.loader.elapsed_s
                                              : 0;
  Verdict verdict{.bound = Bound::kCompute, .cause = Cause::kTrainer, .share = own};
  if (c.stager == nullptr && c.loader.hand_over_s > kMostly * c.loader.elapsed_s) {
    verdict.cause = Cause::kHandOver;
    verdict.finding = fmt::format("Bound by next() itself: arming and handing out took {} of the time, {} a batch.",
                                  percent(c.loader.hand_over_s / c.loader.elapsed_s),
                                  time_text(c.loader.hand_over_s / static_cast<double>(c.loader.batches)));
    verdict.advice = "Larger batches cost fewer calls.";
    return verdict;
  }
  verdict.finding = fmt::format(
      "Compute-bound: the trainer's step took {} of the time, it waited for data {}; the workers "
      "waited for it {} of theirs.",
      percent(own), percent(c.lost), percent(c.loader.blocked_share));
  const int enough = c.workers_needed();
  if (c.sample_s > 0 && c.loader.num_workers > 1 && enough < c.loader.num_workers) {
    verdict.advice = fmt::format("num_workers={} would do.", enough);
    verdict.knobs = {knob("num_workers", enough)};
  } else {
    verdict.advice = "The loader keeps up; what is left to win is in the step.";
  }
  return verdict;
}

std::optional<Verdict> transfer_bound(const Case& c) {
  if (c.stager == nullptr || c.stager->bytes == 0) return std::nullopt;
  const double feeder_waited = c.loader.elapsed_s > 0 ? (c.loader.wait_s + c.loader.sampler_s) / c.loader.elapsed_s : 0;
  // next() gives a batch whose copy is only queued: it is then the device that waits, which no clock of the host sees.
  const bool link_is_full = c.stager->copy_share >= kNearlyAll;
  const bool late = c.lost >= kSmall && c.stager->copy_share >= kMostly && c.stager->copy_share >= feeder_waited;
  if (!link_is_full && !late) return std::nullopt;
  Verdict verdict{.bound = Bound::kTransfer, .cause = Cause::kLink, .share = std::max(c.lost, c.stager->copy_share)};
  const bool pageable = c.stager->registrations == 0;
  if (pageable) verdict.cause = Cause::kUnregisteredMemory;
  verdict.finding = fmt::format("Transfer-bound: copies ran {} of the time, at {:.0f} MB/s{}; next() waited {} of it.",
                                percent(c.stager->copy_share), c.stager->copy_bytes_per_s / 1e6,
                                pageable ? " from memory that is not page-locked" : "", percent(c.lost));
  if (pageable) {
    verdict.advice = "register_memory=true locks it; where that is set, raise the limit of locked memory (ulimit -l).";
    verdict.knobs = {{"register_memory", "true"}};
  } else {
    verdict.advice = "Copy less: uint8 pictures that the device normalises, 16-bit floats, padding by buckets.";
  }
  return verdict;
}

std::optional<Verdict> late_sampler(const Case& c) {
  const LoaderStats& s = c.loader;
  if (s.sampler_s < kMostly * (s.wait_s + s.sampler_s)) return std::nullopt;
  const bool bursts = s.worst_tenth_share >= kUneven;
  return Verdict{.bound = bursts ? Bound::kBursty : Bound::kInput,
                 .cause = Cause::kSampler,
                 .share = c.lost,
                 .finding = fmt::format("{}: the sampler took {} of the time to draw indices, up to {} for one batch.",
                                        bursts ? "Bursty" : "Input-bound", percent(s.sampler_s / s.elapsed_s),
                                        time_text(s.longest_wait_ms * 1e-3)),
                 .advice = "Draw the order of an epoch ahead, or in constant time (RandomSampler, FeistelSampler)."};
}

std::optional<Verdict> bursty(const Case& c) {
  const LoaderStats& s = c.loader;
  if (s.worst_tenth_share < kUneven || s.blocked_share < kMuch) return std::nullopt;
  const double batch_s = s.elapsed_s / static_cast<double>(s.batches);
  const double missing = std::clamp(std::ceil(s.longest_wait_ms * 1e-3 / batch_s), 1.0, 64.0);
  const Knob deeper = prefetch_knob(s, s.prefetch + missing);
  return Verdict{
      .bound = Bound::kBursty,
      .cause = Cause::kUnevenSamples,
      .share = c.lost,
      .finding = fmt::format("Bursty: {}, {} of that for a tenth of the batches (up to {}), while the workers "
                             "had nothing to do {} of theirs.",
                             waited(c), percent(s.worst_tenth_share), time_text(s.longest_wait_ms * 1e-3),
                             percent(s.blocked_share)),
      .advice = setting(deeper) + " lets them work ahead; else spread the costly samples.",
      .knobs = {deeper}};
}

std::optional<Verdict> shallow(const Case& c) {
  const LoaderStats& s = c.loader;
  if (s.blocked_share < kMostly || s.num_workers == 0 || s.prefetch > s.num_workers) return std::nullopt;
  const Knob deeper = prefetch_knob(s, std::max(2 * s.prefetch, s.num_workers + 1));
  return Verdict{.bound = Bound::kInput,
                 .cause = Cause::kPrefetch,
                 .share = c.lost,
                 .finding = fmt::format("Input-bound: {}, and yet the workers had nothing to do {} of theirs: only {} "
                                        "batches may be in flight.",
                                        waited(c), percent(s.blocked_share), s.prefetch),
                 .advice = setting(deeper) + " keeps them busy.",
                 .knobs = {deeper}};
}

Verdict input_bound(const Case& c) {
  const LoaderStats& s = c.loader;
  const Stage stage = heaviest_stage(s);
  Verdict verdict{.bound = Bound::kInput, .cause = stage.cause, .share = c.lost};
  verdict.finding = fmt::format("Input-bound: {}; {} {} for {} of {} a sample.", waited(c), workers_text(s.num_workers),
                                s.num_workers <= 1 ? fmt::format("{}s", stage.doing) : stage.doing,
                                time_text(stage.us * 1e-6), time_text(c.sample_s));
  if (stage.cause == Cause::kDataset && s.num_workers <= 1)
    verdict.finding = fmt::format("Input-bound: {}; {} takes {} a sample.", waited(c), workers_text(s.num_workers),
                                  time_text(c.sample_s));
  const int needed = c.workers_needed(), possible = c.workers_possible();
  const int wanted = std::min(needed, possible);
  if (wanted <= s.num_workers) {
    verdict.advice =
        fmt::format("More workers find no processor ({:.1f} CPUs). {}", s.usable_cpus, make_cheaper(stage.cause));
    return verdict;
  }
  const double rate = wanted * s.threads_per_worker / std::max(c.sample_s, 1e-9);
  verdict.advice =
      needed <= possible
          ? fmt::format("num_workers={} would keep up with the trainer.", wanted)
          : fmt::format("num_workers={} would give up to {:.0f} samples/s{}.", wanted, rate,
                        c.computes() ? fmt::format(", all that {:.1f} CPUs can; the trainer takes more. {}",
                                                   s.usable_cpus, make_cheaper(stage.cause))
                                     : std::string("; reads that wait need no processor"));
  verdict.knobs = {knob("num_workers", wanted)};
  return verdict;
}

Verdict judge_case(const Case& c) {
  if (auto found = stopped_worker(c)) return *found;
  if (c.loader.batches < kFewestBatches)
    return {.finding = fmt::format("Too early to tell: {} batches so far, a verdict needs {}.", c.loader.batches,
                                   kFewestBatches)};
  if (auto found = transfer_bound(c)) return *found;
  if (c.lost < kSmall) {
    if (auto found = trainer_starved(c)) return *found;
    return compute_bound(c);
  }
  using Rule = std::optional<Verdict> (*)(const Case&);
  for (const Rule rule : {small_budget, late_sampler, slow_worker, oversubscribed, bursty, shallow}) {
    if (auto found = rule(c)) return *found;
  }
  return input_bound(c);
}

}  // namespace

const char* to_string(Bound bound) noexcept {
  switch (bound) {
    case Bound::kUnknown: return "unknown";
    case Bound::kInput: return "input-bound";
    case Bound::kTransfer: return "transfer-bound";
    case Bound::kCompute: return "compute-bound";
    case Bound::kBursty: return "bursty";
  }
  return "unknown";
}

const char* to_string(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNone: return "none";
    case Cause::kRead: return "read";
    case Cause::kDecode: return "decode";
    case Cause::kTransform: return "transform";
    case Cause::kCollate: return "collate";
    case Cause::kDataset: return "dataset";
    case Cause::kSampler: return "sampler";
    case Cause::kUnevenSamples: return "uneven_samples";
    case Cause::kSlowWorker: return "slow_worker";
    case Cause::kStoppedWorker: return "stopped_worker";
    case Cause::kPrefetch: return "prefetch";
    case Cause::kMemoryBudget: return "memory_budget";
    case Cause::kOversubscribed: return "oversubscribed";
    case Cause::kTrainerStarved: return "trainer_starved";
    case Cause::kHandOver: return "hand_over";
    case Cause::kLink: return "link";
    case Cause::kUnregisteredMemory: return "unregistered_memory";
    case Cause::kTrainer: return "trainer";
  }
  return "none";
}

Verdict judge(const LoaderStats& loader) { return judge_case(Case(loader, nullptr)); }
Verdict judge(const LoaderStats& loader, const StagerStats& stager) { return judge_case(Case(loader, &stager)); }

Verdict LoaderStats::verdict() const {
  const bool copies = staging && staging->batches > 0;
  return copies ? judge(*this, *staging) : judge(*this);
}

}  // namespace infeed

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/phrase.h"
#include "infeed/base/error.h"
#include "infeed/device/open.h"
#include "infeed/device/simulated.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "infeed/tuner/sweep.h"
#include "tuner/load_watch.h"
#include "tuner/median.h"

// Each run makes its loader anew: nothing of one setting is warm for the next.

namespace infeed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewestBatches = 8;  // measured, however short the run

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

LoaderOptions loader_options(const WorkerSetting& setting, const JobOptions& job) {
  return {.batch_size = job.batch_size,
          .shuffle = job.shuffle,
          .seed = job.seed,
          .num_workers = setting.claimants() == 0 ? 0 : setting.workers,
          .worker_kind = setting.kind,
          .threads_per_worker = setting.claimants() == 0 ? 1 : setting.threads,
          .prefetch = setting.prefetch,
          .on_error = OnError::kReplace,  // one bad sample does not end a sweep
          .worker_executable = job.worker_executable,
          .memory_limit = job.memory_limit};
}

std::shared_ptr<Device> make_device(const JobOptions& job) {
  if (job.device.empty()) return nullptr;
  if (job.device != "simulated") return open_device(job.device);
  return std::make_shared<SimulatedDevice>(SimulatedOptions{.bandwidth_bytes_per_s = job.device_bytes_per_s});
}

/// The loader, the way to the device, and the trainer.
class Job {
 public:
  Job(const Dataset& dataset, const WorkerSetting& setting, const JobOptions& job)
      : job_(job), begin_(Clock::now()), loader_(dataset, loader_options(setting, job)), device_(make_device(job)) {
    if (device_) stager_.emplace(loader_, device_, StagerOptions{.register_memory = setting.pinned});
  }

  RunFigures run(const WorkerSetting& setting) {
    RunFigures figures;
    if (!turn()) return {.stopped = true};
    figures.first_batch_ms = seconds_since(begin_) * 1e3;
    for (int i = 0; i < job_.warm_up_batches + setting.workers; ++i) {
      if (!turn()) return {.stopped = true};
    }
    measure(figures);
    return figures;
  }

 private:
  // False where it is to end.
  bool turn() {
    if (job_.stop && job_.stop()) return false;
    std::optional<Batch> batch = next();
    if (!batch) batch = next();  // the next epoch's first
    if (!batch) throw ConfigError("the data set gives no batch; it is smaller than a batch, or empty.");
    const Clock::time_point begin = Clock::now();
    if (job_.step) {
      job_.step(*batch);
    } else if (job_.step_ms > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(job_.step_ms));
    }
    step_s_ += seconds_since(begin);
    samples_ += batch->size();
    return true;
  }

  std::optional<Batch> next() {
    if (!stager_) return loader_.next();
    std::optional<StagedBatch> staged = stager_->next();
    if (!staged) return std::nullopt;
    stager_->compute_stream().synchronize();  // the step begins when the copy has passed
    return std::move(*staged).take();
  }

  void measure(RunFigures& figures) {
    loader_.reset_stats();
    if (stager_) stager_->reset_stats();
    std::vector<std::int64_t> pids = {getpid()};
    for (const WorkerStats& worker : loader_.stats().workers) pids.push_back(worker.pid);
    const LoadWatch watch(pids);
    samples_ = 0;
    step_s_ = 0;
    const Clock::time_point begin = Clock::now();
    for (std::int64_t batches = 0; !is_enough(batches, begin); ++batches) {
      if (!turn()) {
        figures.stopped = true;
        return;
      }
    }
    const double elapsed = seconds_since(begin);
    figures.others_share = watch.others_share();
    figures.cpu_s = watch.our_cpu_s() / static_cast<double>(samples_);
    figures.samples_per_s = static_cast<double>(samples_) / elapsed;
    figures.utilisation = std::min(1.0, step_s_ / elapsed);
    add_stats(figures);
  }

  [[nodiscard]] bool is_enough(std::int64_t batches, Clock::time_point begin) const {
    if (job_.batches > 0) return batches >= job_.batches;
    return batches >= kFewestBatches && seconds_since(begin) >= job_.seconds;
  }

  void add_stats(RunFigures& figures) const {
    LoaderStats stats = loader_.stats();
    if (stager_) stats.staging = stager_->stats();
    figures.memory_bytes = static_cast<double>(stats.pss_bytes);
    figures.transfer_share = stats.staging ? stats.staging->copy_share : 0;
    figures.sample_s =
        (stats.read_us + stats.decode_us + stats.transform_us + stats.collate_us + stats.other_us) * 1e-6;
    figures.cpu_share =
        stats.on_cpu_share < 0 ? 1 : std::min(1.0, stats.on_cpu_share + std::max(0.0, stats.cpu_queue_share));
    const Verdict verdict = stats.verdict();
    figures.verdict = verdict.str();
    figures.finding = verdict.finding;
    if (stats.replaced > 0 && !stats.faulty.empty())
      figures.verdict += fmt::format(" {} samples could not be read, others came in their places; the first: {}.",
                                     stats.replaced, phrase(stats.faulty.front().reason));
  }

  const JobOptions& job_;
  Clock::time_point begin_;
  Loader loader_;
  std::shared_ptr<Device> device_;
  std::optional<Stager> stager_;
  std::int64_t samples_ = 0;
  double step_s_ = 0;
};

}  // namespace

RunFigures run_job(const Dataset& dataset, const WorkerSetting& setting, const JobOptions& job) {
  if (!(job.seconds > 0) || !(job.step_ms >= 0) || job.warm_up_batches < 0 || job.batches < 0)
    throw ConfigError(fmt::format(
        "seconds is {}, step_ms {}, warm_up_batches {}, batches {}; the first must be above 0, the others not below.",
        job.seconds, job.step_ms, job.warm_up_batches, job.batches));
  return Job(dataset, setting, job).run(setting);
}

Measure measure_job(const Dataset& dataset, JobOptions job, int repetitions) {
  return measure_runs(
      [&dataset, job = std::move(job)](const WorkerSetting& setting) { return run_job(dataset, setting, job); },
      repetitions);
}

Measure measure_runs(RunSetting run, int repetitions) {
  return [run = std::move(run), repetitions](const WorkerSetting& setting) -> Trial {
    Trial trial{.setting = setting};
    std::vector<double> rates, utilisations, others;
    for (int i = 0; i < std::max(1, repetitions); ++i) {
      const RunFigures figures = run(setting);
      if (figures.stopped) return {.setting = setting, .stopped = true};
      rates.push_back(figures.samples_per_s);
      utilisations.push_back(figures.utilisation);
      others.push_back(figures.others_share);
      trial.memory_bytes = std::max(trial.memory_bytes, figures.memory_bytes);
    }
    trial.runs = static_cast<int>(rates.size());
    trial.samples_per_s = median(rates);
    trial.spread = spread(rates);
    trial.utilisation = median(utilisations);
    trial.others_share = median(others);
    return trial;
  };
}

}  // namespace infeed

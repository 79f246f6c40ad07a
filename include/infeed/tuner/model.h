#pragma once
/// What a pipeline of so many workers would give: a model with eight costs, each of which can be measured.
///
///   infeed::PipelineCosts costs{.sample_s = 4e-3, .step_s = 1e-3, .usable_cpus = 8};
///   infeed::predict(costs, {.kind = infeed::WorkerKind::kFork, .workers = 4, .prefetch = 8}).samples_per_s;  // 800
///
/// docs/tuning.md derives it.

#include <cstdint>
#include <string>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/loader/options.h"

namespace infeed {

/// What one can turn.
struct WorkerSetting {
  WorkerKind kind = WorkerKind::kThread;  ///< kInline: workers is 0
  int workers = 0;
  int threads = 1;   ///< of each worker
  int prefetch = 0;  ///< batches in flight, in all; 0: twice the workers
  bool pinned = true;

  [[nodiscard]] INFEED_API int claimants() const noexcept;  ///< threads that read samples, 0 for inline
  [[nodiscard]] INFEED_API int depth() const noexcept;      ///< batches in flight, at least 1
  [[nodiscard]] INFEED_API bool processes() const noexcept;
  /// "fork x 4", with what differs from the defaults behind it.
  [[nodiscard]] INFEED_API std::string str() const;
  [[nodiscard]] INFEED_API State to_state() const;
  friend bool operator==(const WorkerSetting&, const WorkerSetting&) = default;
};

/// What a sample costs, in seconds a sample where nothing else is said.
struct PipelineCosts {
  double sample_s = 0;         ///< a worker's time: read, decode, transform, collate
  double cpu_share = 1;        ///< of sample_s: on a processor; the rest it sleeps in reads
  double step_s = 0;           ///< the trainer's step
  double trainer_cpus = 0;     ///< processors that the step keeps busy; 0: it runs on a device
  double hand_over_s = 0;      ///< the trainer's thread takes a batch from workers: nothing overlaps it
  double copy_s = 0;           ///< to the device from page-locked memory, beside the step
  double pageable_factor = 1;  ///< how many times that from other memory, where it also holds up the step
  double unevenness_s = 0;  ///< wait for uneven batches with one worker and one in flight; n in flight leave the n-th
                            ///< part, and many workers half: the others go on while one is late
  double crosstalk_s = 0;   ///< that each worker costs all: caches, memory bus, switches, locks
  double usable_cpus = 64;  ///< affinity and cgroup quota
  double base_bytes = 0;    ///< memory without workers
  double worker_bytes = 0;  ///< of a worker process; threads share
  double batch_bytes = 0;   ///< of a batch in flight

  /// A line for each, with its unit.
  [[nodiscard]] INFEED_API std::string str() const;
  [[nodiscard]] INFEED_API State to_state() const;
};

/// What sets the pace.
enum class Station : std::uint8_t {
  kWorkers,     ///< too few for what a sample costs
  kProcessors,  ///< all are busy: more workers find none
  kCopies,
  kTrainer,
};
[[nodiscard]] INFEED_API const char* to_string(Station station) noexcept;

struct Prediction {
  double samples_per_s = 0;
  double memory_bytes = 0;  ///< of all processes
  double utilisation = 0;   ///< share of the time that the trainer's step runs
  double copy_share = 0;    ///< share of the time that copies run
  Station station = Station::kTrainer;

  [[nodiscard]] double epoch_s(double samples) const noexcept { return samples / samples_per_s; }
};

/// Throws ConfigError where nothing costs any time, or on a negative cost.
[[nodiscard]] INFEED_API Prediction predict(const PipelineCosts& costs, const WorkerSetting& setting);

}  // namespace infeed

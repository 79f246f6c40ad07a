#pragma once
/// Where the time and the memory of a Loader go.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/loader/verdict.h"

namespace infeed {

struct WorkerStats {
  int id = 0;
  std::int64_t pid = 0;  ///< the loader's own for threads and inline; 0: a process that has not begun
  std::uint64_t samples = 0;
  double busy_s = 0;     ///< reading, decoding, transforming
  double wait_s = 0;     ///< nothing to do: the consumer or the depth holds it back
  double in_hand_s = 0;  ///< how long ago it claimed the rows in its hands; 0: none
  bool stopped = false;  ///< its process is stopped (SIGSTOP, a debugger)
  int restarts = 0;
};

/// A sample that on_error left out or replaced.
struct FaultySample {
  std::int64_t index = 0;
  std::int64_t replaced_by = -1;  ///< -1: skipped
  std::string reason;             ///< file and cause
};

/// Of a Stager. Since construction, or since the last reset_stats(). Shares are of the time between the first and the latest next().
struct StagerStats {
  std::uint64_t batches = 0;  ///< handed out
  std::uint64_t bytes = 0;    ///< copied
  double elapsed_s = 0;
  double copy_s = 0;            ///< device time between begin and end of the copies
  double copy_bytes_per_s = 0;  ///< while copies run
  double copy_share = 0;        ///< copies ran; near 1: the link is the bottleneck
  double starved_share = 0;     ///< next() waited; with a low copy_share the loader is the bottleneck
  int batches_held = 0;         ///< handed out and not dropped
  int registrations = 0;        ///< page-locked ranges
  std::uint64_t registered_bytes = 0;
  std::uint64_t device_bytes = 0;  ///< device memory of the stager, held batches included

  /// For people.
  [[nodiscard]] INFEED_API std::string str() const;
};

/// Since construction, or since the last reset_stats(). Shares are of elapsed_s where nothing else is said.
struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  double elapsed_s = 0;  ///< from the first next() to the latest, or to now while it waits
  double samples_per_s = 0;
  double first_batch_ms = 0;  ///< construction to the first batch in hand

  // The consumer's time: these four are elapsed_s.
  double wait_s = 0;             ///< next() waited for data (inline: did the work)
  double sampler_s = 0;          ///< the sampler drew indices
  double hand_over_s = 0;        ///< the rest of next(): arming, taking, handing out
  double trainer_s = 0;          ///< between two calls of next()
  double starved_share = 0;      ///< wait_s
  std::uint64_t waits = 0;       ///< batches that next() waited for
  double longest_wait_ms = 0;    ///< for one batch, sampler included
  double worst_tenth_share = 0;  ///< of wait_s and sampler_s: what fell on the worst tenth of the batches. 0.1: even

  // The workers' time: per sample, mean.
  double blocked_share = 0;  ///< workers waited for room, mean over workers
  double read_us = 0;
  double decode_us = 0;
  double transform_us = 0;
  double collate_us = 0;
  double other_us = 0;  ///< rest of a worker's busy time: a dataset that tells no stages
  std::uint64_t bytes_read = 0;

  // Processors. Negative: the kernel does not tell.
  double on_cpu_share = -1;     ///< of the workers' busy time: they ran. The rest they slept in reads, or queued
  double cpu_queue_share = -1;  ///< of the workers' busy time: ready to run, but no processor was free
  double trainer_cpu_queue_share = -1;  ///< the thread that calls next() was ready to run, but no processor was free

  // The loader as it is set up.
  int num_workers = 0;
  int threads_per_worker = 1;
  int prefetch = 0;         ///< batches in flight
  int prefetch_factor = 0;  ///< the same by worker, where that is the option (PyTorch's loaders); else 0
  double usable_cpus = 0;   ///< by affinity and cgroup quota
  std::uint64_t memory_limit = 0;
  double short_of_memory_share = 0;  ///< of batches: memory_limit or the machine let fewer than `prefetch` be in flight

  /// Proportional set size of this process and all workers; 0 where the kernel does not tell.
  std::uint64_t pss_bytes = 0;
  std::uint64_t arena_bytes = 0;  ///< committed for batches
  int batches_held = 0;           ///< handed out and not given back
  int private_copies = 0;         ///< batches handed out as copies because extents ran short
  int restarts = 0;
  std::uint64_t skipped = 0;
  std::uint64_t replaced = 0;
  std::vector<FaultySample> faulty;  ///< the first 1,000
  std::vector<WorkerStats> workers;

  /// Of the way to LoaderOptions::device: then the consumer's time above is the Stager's thread's, not the trainer's. With
  /// pin_memory the page locks alone: the copies are the user's.
  std::optional<StagerStats> staging;

  /// What bounds the pipeline, and the knob to turn.
  [[nodiscard]] INFEED_API Verdict verdict() const;
  /// The verdict, and a table, for people.
  [[nodiscard]] INFEED_API std::string str() const;
  /// All but `faulty`, by the names of the fields; with the verdict's text.
  [[nodiscard]] INFEED_API State to_state() const;
  /// What to_state() gave; a missing field stays as it is. Throws StateError on one of another type.
  [[nodiscard]] INFEED_API static LoaderStats from_state(const State& state);
};

}  // namespace infeed

#pragma once
/// What a spawned worker is told, and by which descriptors.
///
///   infeed-worker WORKER_ID NUM_WORKERS CONSUMER_PID
///
///   descriptor  what                      kept open
///   0 1 2       the consumer's            yes
///   3           Boot as JSON (a memfd)    until read
///   4           the arena                 while mapped
///   5           the consumer's doorbell   yes
///   6 ...       the dataset's "fds"       as the dataset likes
///   others      closed

#include <string>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "memory/arena.h"
#include "worker/plan.h"
#include "worker/pool.h"

namespace infeed {

inline constexpr int kBootFd = 3;
inline constexpr int kArenaFd = 4;
inline constexpr int kReadyFd = 5;
inline constexpr int kFirstDatasetFd = 6;

/// The same for all workers of a pool.
struct Boot {
  ArenaOptions geometry;
  bool is_stream = false;
  DatasetSpec spec;  ///< "fds" in its params: numbers in the worker
  bool has_collate = false;
  std::string collate_name;
  State collate_params;
  std::uint64_t seed = 0;
  int max_rows = 1;
  FaultPolicy on_error = FaultPolicy::kRaise;
  int replace_tries = 0;
  int threads = 1;
  int spin_us = 0;
  std::vector<int> cpu_affinity;
  std::string worker_init_name;

  [[nodiscard]] std::string to_json() const;
  /// Throws ConfigError where the other side is of another version, StateError on any other fault.
  [[nodiscard]] static Boot from_json(const std::string& json);
};

/// Describes plan and options; `dataset_fds` becomes the descriptors that the worker must inherit, in order. Throws
/// ConfigError for what cannot cross: no spec(), a collate without a name, a worker_init without one.
[[nodiscard]] Boot make_boot(const PoolOptions& options, const Arena& arena, const WorkPlan& plan,
                             std::vector<int>& dataset_fds);

}  // namespace infeed

#pragma once
/// The options after checking: nothing is "auto" any more.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "batch/layout.h"
#include "infeed/loader/options.h"
#include "memory/limits.h"
#include "worker/plan.h"

namespace infeed {

struct Settings {
  WorkerKind kind = WorkerKind::kInline;
  bool whole = false;  ///< filling
  bool in_order = true;
  int depth = 2;  ///< batches in flight
  int num_slots = 4;
  int max_workers = 1;
  int max_restarts = 0;
  int spin_us = 0;
  int max_rows = 1;               ///< of a batch
  std::uint64_t batch_bytes = 0;  ///< of the largest batch; 0 where rows are of unknown size
  std::uint64_t extent_bytes = 0;
  std::uint64_t memory_limit = 0;  ///< 0: none but the machine's
  double usable_cpus = 1;
  std::optional<BatchLayout> layout;  ///< in-place filling
};

/// Checks `options` against the data and the machine. `dataset` or `stream` is given, and `max_rows`, the largest
/// batch. Throws ConfigError and MemoryError before anything is made.
[[nodiscard]] Settings make_settings(const LoaderOptions& options, const Schema& schema, bool is_stream,
                                     std::int64_t max_rows, const MachineLimits& limits);

/// Batches in flight for so many workers, where the options name no number.
[[nodiscard]] int default_depth(const Settings& settings, int num_workers) noexcept;

/// The part that needs no schema: combinations that exclude each other.
void check_options(const LoaderOptions& options, bool is_stream);

[[nodiscard]] FaultPolicy fault_policy(OnError on_error) noexcept;

}  // namespace infeed

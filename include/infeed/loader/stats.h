#pragma once
/// Where the time and the memory of a Loader go.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/base/export.h"

namespace infeed {

struct WorkerStats {
  int id = 0;
  std::int64_t pid = 0;  ///< of its process; the loader's own for threads and inline
  std::uint64_t samples = 0;
  double busy_s = 0;  ///< reading, decoding, transforming
  double wait_s = 0;  ///< nothing to do: the consumer or the depth holds it back
  int restarts = 0;
};

/// A sample that on_error left out or replaced.
struct FaultySample {
  std::int64_t index = 0;
  std::int64_t replaced_by = -1;  ///< -1: skipped
  std::string reason;             ///< file and cause
};

/// Since construction, or since the last reset_stats(). Shares are of the time between the first and the latest next().
struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  double elapsed_s = 0;
  double samples_per_s = 0;
  double first_batch_ms = 0;  ///< construction to the first batch in hand
  double starved_share = 0;   ///< next() waited for data
  double blocked_share = 0;   ///< workers waited for room, mean over workers
  double read_us = 0;         ///< per sample, mean
  double decode_us = 0;       ///< per sample, mean
  double transform_us = 0;    ///< per sample, mean
  double other_us = 0;        ///< rest of a worker's busy time, per sample
  std::uint64_t bytes_read = 0;
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

  /// A table for people.
  [[nodiscard]] INFEED_API std::string str() const;
};

}  // namespace infeed

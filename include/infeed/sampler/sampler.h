#pragma once
/// Which samples make the next batch. Start with RandomSampler.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"

namespace infeed {

/// Yields the sample indices of an epoch, in order.
///
/// Determinism: seed, epoch and rank fix the indices; num_workers does not matter.
/// Threads: one at a time; the loader calls it from the thread that calls next().
class INFEED_API Sampler {
 public:
  virtual ~Sampler();

  /// Begins `epoch`, counted from 0. What was left of the one before is dropped.
  virtual void start_epoch(std::uint64_t epoch) = 0;

  /// Fills `indices` from the front with values in [0, dataset size); returns how many.
  /// Fewer than asked only at the end of the epoch, then 0 until start_epoch.
  [[nodiscard]] virtual std::size_t next(std::span<std::int64_t> indices) = 0;

  /// Passes over up to `count` indices; returns how many. Default: draws and drops them.
  virtual std::int64_t skip(std::int64_t count);

  /// Indices one epoch yields on this rank; nullopt if endless.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const = 0;

  /// Type, seed, sizes, epoch and position within the epoch, to resume a run.
  virtual void save(State& state) const = 0;
  /// What save() would have written after `position` indices since start_epoch or load; false (the default): it cannot
  /// tell, and the loader saves the start and the number of indices to skip. For samplers whose states serve other
  /// ranks.
  [[nodiscard]] virtual bool save_at(std::int64_t position, State& state) const;
  /// Takes up a saved position (start_epoch is not needed after). Throws StateError on another type, seed or dataset
  /// size.
  virtual void load(const State& state) = 0;
};

/// Yields the indices of one batch at a time: for batches of unequal size or a composition of one's own.
/// Threads: as Sampler.
class INFEED_API BatchSampler {
 public:
  virtual ~BatchSampler();
  virtual void start_epoch(std::uint64_t epoch) = 0;
  /// Replaces `indices` by those of the next batch; false at the end of the epoch. An empty batch is an IndexError in
  /// the loader.
  [[nodiscard]] virtual bool next(std::vector<std::int64_t>& indices) = 0;
  /// Largest batch that next() yields: memory is laid out for it.
  [[nodiscard]] virtual std::int64_t max_batch_size() const = 0;
  /// Batches of one epoch; nullopt if unknown or endless.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const = 0;
  virtual void save(State& state) const = 0;
  virtual void load(const State& state) = 0;
};

}  // namespace infeed

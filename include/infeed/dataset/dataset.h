#pragma once
/// Where samples come from: Dataset (by index) or Stream (one after another).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/batch/row.h"
#include "infeed/batch/schema.h"

namespace infeed {

/// How a spawned worker makes the dataset again: a name that the registry knows (dataset/registry.h) and its
/// parameters.
struct DatasetSpec {
  std::string name;
  State params;
  std::string plugin;  ///< path of the shared library that registers `name`; empty for the built-in ones
};

/// Samples by index.
///
/// Threads: schema(), size() and read() are called from many threads and processes at once, on one const object.
/// Errors: read() throws DataError (or anything derived from std::exception) for a sample that cannot be read; the
/// loader's on_error option decides what happens then. Other samples of the batch are not affected. Randomness: use
/// row.context().rng(): the batch is then the same for any number of workers and after a resume.
class INFEED_API Dataset {
 public:
  virtual ~Dataset();

  /// Number of samples; constant.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Fields of a sample; constant.
  [[nodiscard]] virtual const Schema& schema() const = 0;
  /// Writes sample `row.index()`, in [0, size()), into every field of `row`.
  virtual void read(Row& row) const = 0;
  /// Hint: sample `index` will be read a few rows from now. Called by workers; must be cheap, must not throw.
  virtual void prefetch(std::int64_t index) const noexcept;
  /// How to make this dataset in another process; nullopt (the default) if that is impossible: then spawn is a
  /// ConfigError.
  [[nodiscard]] virtual std::optional<DatasetSpec> spec() const;
  /// What an error message calls sample `index`: a file's path, say. Default: empty.
  [[nodiscard]] virtual std::string describe(std::int64_t index) const;
};

/// One shard of a stream, read front to back. One owner, one thread at a time.
class INFEED_API StreamReader {
 public:
  virtual ~StreamReader();
  /// Writes the next sample; false at the shard's end, with `row` untouched.
  virtual bool next(Row& row) = 0;
  /// Passes over up to `count` samples without decoding them; returns how many. Used to resume and after a worker's
  /// death.
  virtual std::int64_t skip(std::int64_t count) = 0;
};

/// Samples one after another, split into shards that workers read side by side. Batches come from the shards in turn:
/// batch n from the n-th live shard, round robin. The number of shards, not of workers, fixes the order. Threads:
/// open() is called from several threads and processes at once.
class INFEED_API Stream {
 public:
  virtual ~Stream();
  /// Fields of a sample; constant.
  [[nodiscard]] virtual const Schema& schema() const = 0;
  /// Reader of shard `shard` of `num_shards` in `epoch`. The shards of one (epoch, num_shards) hold each sample once.
  [[nodiscard]] virtual std::unique_ptr<StreamReader> open(std::uint64_t epoch, std::int64_t shard,
                                                           std::int64_t num_shards) const = 0;
  /// Samples of an epoch over all shards, if known.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const;
  /// As Dataset::spec().
  [[nodiscard]] virtual std::optional<DatasetSpec> spec() const;
};

}  // namespace infeed

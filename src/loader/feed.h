#pragma once
/// What the batches of an epoch are made of, in order; and the position to resume from.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "infeed/base/state.h"
#include "infeed/sampler/sampler.h"

namespace infeed {

/// One batch to be armed.
struct Work {
  std::uint64_t number = 0;           ///< in the epoch, in sampler order
  std::vector<std::int64_t> indices;  ///< empty for streams
  int rows = 0;
  int shard = -1;          ///< streams only
  std::int64_t begin = 0;  ///< position of the first row: in the sampler's order, or within the shard
  [[nodiscard]] std::int64_t end() const noexcept { return begin + rows; }
};

/// Threads: the consumer's only.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual void start_epoch(std::uint64_t epoch) = 0;
  /// The next batch to arm; false if there is none (for a stream: none before taken() says more). Throws IndexError.
  [[nodiscard]] virtual bool next(Work& work) = 0;
  /// Streams: what came of `work`.
  virtual void taken(const Work& work, bool shard_ended);
  /// Streams: how many batches of the shard in a row, `work` the last of them, gave no good sample.
  virtual int barren(const Work& work, bool any_good);
  /// `rows` rows of `work`, from its row 0 on, are now with the user (or dropped for good): the position to resume from
  /// moves.
  virtual void delivered(const Work& work, int rows) = 0;
  /// Batches of an epoch, if known.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const = 0;
  [[nodiscard]] virtual std::int64_t max_batch_size() const = 0;
  /// Position as of delivered(), in the epoch that runs.
  virtual void save(State& state) const = 0;
  /// Takes a saved position up; start_epoch is not called for that epoch.
  virtual void load(const State& state) = 0;
};

/// Indices of a Sampler, cut into batches.
class SamplerFeed final : public Feed {
 public:
  /// `sampler` is borrowed.
  SamplerFeed(Sampler& sampler, std::int64_t dataset_size, std::int64_t batch_size, bool drop_last);

  void start_epoch(std::uint64_t epoch) override;
  bool next(Work& work) override;
  void delivered(const Work& work, int rows) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  [[nodiscard]] std::int64_t max_batch_size() const override { return batch_size_; }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  void check(std::span<const std::int64_t> indices) const;
  void check_end();
  void load_early(const State& state);
  [[nodiscard]] std::int64_t next_ask() const;
  [[nodiscard]] std::optional<std::int64_t> promised_size() const;

  Sampler& sampler_;
  std::int64_t dataset_size_;
  std::int64_t batch_size_;
  bool drop_last_;
  State epoch_start_;        ///< the sampler's state at position origin_
  std::int64_t origin_ = 0;  ///< position at which this run of the epoch began
  std::int64_t drawn_ = 0;   ///< position of the sampler
  std::int64_t cursor_ = 0;  ///< everything before it was delivered
  std::uint64_t next_number_ = 0;
  bool at_end_ = false;
  bool resumed_ = false;
  std::set<std::int64_t> early_;  ///< begins of batches delivered out of order, after cursor_
};

/// Batches of a BatchSampler.
class BatchFeed final : public Feed {
 public:
  /// `sampler` is borrowed.
  BatchFeed(BatchSampler& sampler, std::int64_t dataset_size);

  void start_epoch(std::uint64_t epoch) override;
  bool next(Work& work) override;
  void delivered(const Work& work, int rows) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return sampler_.size(); }
  [[nodiscard]] std::int64_t max_batch_size() const override { return sampler_.max_batch_size(); }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  BatchSampler& sampler_;
  std::int64_t dataset_size_;
  State epoch_start_;
  std::uint64_t next_number_ = 0;
  std::uint64_t low_ = 0;         ///< every batch before it was delivered
  std::set<std::int64_t> early_;  ///< delivered out of order, after low_
};

/// The shards of a Stream in turn.
class StreamFeed final : public Feed {
 public:
  StreamFeed(int num_shards, std::int64_t batch_size, bool drop_last, std::optional<std::int64_t> stream_size);

  void start_epoch(std::uint64_t epoch) override;
  bool next(Work& work) override;
  void taken(const Work& work, bool shard_ended) override;
  int barren(const Work& work, bool any_good) override;
  void delivered(const Work& work, int rows) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  [[nodiscard]] std::int64_t max_batch_size() const override { return batch_size_; }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  struct Shard {
    std::int64_t armed = 0;      ///< rows asked for
    std::int64_t delivered = 0;  ///< rows with the user
    bool ended = false;          ///< no more to ask for
    std::int64_t last = 0;       ///< begin of the batch that met the end
    bool done = false;           ///< its end was delivered, too
    int barren = 0;              ///< batches in a row without a good sample
  };
  std::vector<Shard> shards_;
  std::int64_t batch_size_;
  bool drop_last_;
  std::optional<std::int64_t> stream_size_;
  std::uint64_t next_number_ = 0;
  std::size_t turn_ = 0;            ///< shard to arm next
  std::size_t delivered_turn_ = 0;  ///< shard to deliver next
};

}  // namespace infeed

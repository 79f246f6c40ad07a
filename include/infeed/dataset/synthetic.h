#pragma once
/// Made-up samples with settable cost and faults, for tests and benches.

#include <cstdint>

#include "infeed/dataset/dataset.h"

namespace infeed {

struct SyntheticOptions {
  /// Of the content. Default 0.
  std::uint64_t seed = 0;
  /// Content depends on the loader's seed and the epoch too, as a random transform's would. Default false.
  bool augment = false;
  /// Sizes of variable dimensions are drawn from [min_length, max_length]. Default 0 to 64.
  std::int64_t min_length = 0;
  std::int64_t max_length = 64;
  /// CPU time that reading a sample takes beside writing it, microseconds. Default 0.
  std::int64_t cost_us = 0;
  /// Time that it sleeps before, as a read from a network does, microseconds. Default 0.
  std::int64_t wait_us = 0;
  /// Every slow_every-th sample (index % slow_every == slow_every - 1) costs slow_factor times as much. Default 0:
  /// none.
  std::int64_t slow_every = 0;
  double slow_factor = 10.0;
  /// Every fail_every-th sample is a DataError. Default 0: none.
  std::int64_t fail_every = 0;
};

/// A scalar int64 field holds the sample's index. All else is random: integers over their whole range, bools, floats in
/// [0, 1] (1 by rounding to 16 bits only). The same bytes for the same (seed, index) in every process.
class INFEED_API SyntheticDataset final : public Dataset {
 public:
  /// Throws ConfigError on a negative size or option.
  SyntheticDataset(std::int64_t size, Schema schema, SyntheticOptions options = {});

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;
  [[nodiscard]] std::string describe(std::int64_t index) const override;

  [[nodiscard]] static std::unique_ptr<SyntheticDataset> from_params(const State& params);

 private:
  std::int64_t size_;
  Schema schema_;
  SyntheticOptions options_;
};

/// The samples of a SyntheticDataset as a stream: shard s of n holds the indices s, s + n, ...
class INFEED_API SyntheticStream final : public Stream {
 public:
  /// `size_known`: whether size() tells.
  SyntheticStream(std::int64_t size, Schema schema, SyntheticOptions options = {}, bool size_known = true);

  [[nodiscard]] const Schema& schema() const override { return dataset_.schema(); }
  [[nodiscard]] std::unique_ptr<StreamReader> open(std::uint64_t epoch, std::int64_t shard,
                                                   std::int64_t num_shards) const override;
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;

  [[nodiscard]] static std::unique_ptr<SyntheticStream> from_params(const State& params);

 private:
  SyntheticDataset dataset_;
  bool size_known_;
};

}  // namespace infeed

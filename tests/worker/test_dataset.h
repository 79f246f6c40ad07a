#pragma once
// Datasets that do what a test tells them, in this process or in a spawned one.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "infeed/dataset/registry.h"
#include "infeed/loader/options.h"

namespace infeed::testing {

/// What a sample does besides being read; -1: none.
struct Behaviour {
  std::int64_t size = 1000;
  bool variable = false;               ///< a ragged field of index % 5 + 1 values instead of 4
  std::vector<std::int64_t> raises{};  ///< these indices throw DataError
  std::int64_t exits_at = -1;          ///< calls _exit(0)
  std::int64_t hangs_at = -1;          ///< never comes back
  std::int64_t signals_at = -1;        ///< raises `signal`
  int signal = 0;
  std::int64_t sleep_us = 0;  ///< every sample
  bool broken = false;        ///< cannot be made

  [[nodiscard]] State to_state() const;
  [[nodiscard]] static Behaviour from_state(const State& state);
};

/// Field "x" int64 [4] or [-1]: value i of sample n is n * 10 + i.
class TestDataset final : public Dataset {
 public:
  explicit TestDataset(Behaviour behaviour);
  [[nodiscard]] std::int64_t size() const override { return behaviour_.size; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;

 private:
  Behaviour behaviour_;
  Schema schema_;
};

/// Shard s of S holds the samples s, s + S, s + 2 S, ... of `size`; values as TestDataset's.
class TestStream final : public Stream {
 public:
  explicit TestStream(Behaviour behaviour);
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] std::unique_ptr<StreamReader> open(std::uint64_t epoch, std::int64_t shard,
                                                   std::int64_t num_shards) const override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;

 private:
  Behaviour behaviour_;
  Schema schema_;
};

/// Appends "id num_workers seed pid\n" to the file that $INFEED_TEST_LOG names.
void log_init(const WorkerInfo& info);
/// Throws.
void failing_init(const WorkerInfo& info);

/// "test", "test_stream"; worker_init "log" and "fail".
[[nodiscard]] Registry test_registry();

}  // namespace infeed::testing

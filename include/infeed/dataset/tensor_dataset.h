#pragma once
/// Arrays in memory, a row a sample.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "infeed/batch/batch.h"
#include "infeed/dataset/dataset.h"

namespace infeed {

struct TensorDatasetOptions {
  /// Stores small, delivers wide: field name to a dtype that holds every value of the array's own (uint16 tokens to
  /// int64, uint8 to float32, float16 to float32). Costs a conversion per element read. Default: dtypes as they are.
  std::map<std::string, DType> widen = {};
};

/// Sample i is row i of each array. Arrays may be strided (a transposed or sliced view); their rows are copied at
/// memory speed, large ones past the cache.
///
/// Memory: borrowed, or kept alive by `owner`; must not change. spec() copies the arrays once into a sealed memory file
/// that all spawned workers map; a loader with spawned workers thus takes their size twice.
class INFEED_API TensorDataset final : public Dataset {
 public:
  /// Throws ConfigError where first dimensions differ, an array has none or lies on a device, or widen names what is
  /// not there or loses values.
  explicit TensorDataset(std::vector<NamedArray> arrays, TensorDatasetOptions options = {},
                         std::shared_ptr<const void> owner = nullptr);
  ~TensorDataset() override;

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;
  /// Asks for the row's cache lines, at most 8 KiB a field.
  void prefetch(std::int64_t index) const noexcept override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;

  /// From the params of spec(). Its descriptor must be open here, and may be closed afterwards.
  [[nodiscard]] static std::unique_ptr<TensorDataset> from_params(const State& params);

 private:
  struct Source;
  struct Shared;

  TensorDatasetOptions options_;
  std::shared_ptr<const void> owner_;
  std::int64_t size_ = 0;
  Schema schema_;
  std::vector<Source> sources_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace infeed

#pragma once
/// One sample of a dataset or stream, as values that compare.

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "batch/rows.h"
#include "infeed/dataset/dataset.h"

namespace infeed::testing {

struct SampleField {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const SampleField&, const SampleField&) = default;

  template <typename T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

using Sample = std::vector<SampleField>;

[[nodiscard]] inline Sample sample_of(const RowGather& gather) {
  Sample sample;
  for (const auto& rows : gather.fields()) {
    const ArrayView& view = rows.back();
    sample.push_back({view.dtype, view.shape, {view.data, view.data + view.nbytes()}});
  }
  return sample;
}

/// Reads a sample into memory that held other bytes before.
[[nodiscard]] inline Sample read_sample(const Dataset& dataset, std::int64_t index, std::uint64_t seed = 1,
                                        std::uint64_t epoch = 2) {
  RowGather gather(dataset.schema());
  StageTimes times;
  gather.start_batch();
  Row row = gather.start_row({seed, epoch, index, &times});
  for (std::size_t f = 0; f < row.schema().size(); ++f) {
    if (!row.schema()[f].variable()) std::memset(row[f].data, 0xa5, row[f].nbytes());
  }
  dataset.read(row);
  gather.commit_row();
  return sample_of(gather);
}

/// All samples of one shard.
[[nodiscard]] inline std::vector<Sample> read_shard(StreamReader& reader, const Schema& schema) {
  std::vector<Sample> samples;
  RowGather gather(schema);
  StageTimes times;
  for (std::int64_t i = 0;; ++i) {
    gather.start_batch();
    Row row = gather.start_row({1, 2, i, &times});
    if (!reader.next(row)) return samples;
    gather.commit_row();
    samples.push_back(sample_of(gather));
  }
}

}  // namespace infeed::testing

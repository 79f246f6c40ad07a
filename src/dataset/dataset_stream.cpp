#include "infeed/dataset/dataset_stream.h"

#include <utility>

#include "dataset/index_reader.h"
#include "infeed/base/error.h"

namespace infeed {

DatasetStream::DatasetStream(std::shared_ptr<const Dataset> dataset) : dataset_(std::move(dataset)) {
  if (dataset_ == nullptr) throw ConfigError("a DatasetStream needs a dataset, null was given.");
}

std::unique_ptr<StreamReader> DatasetStream::open(std::uint64_t /*epoch*/, std::int64_t shard,
                                                  std::int64_t num_shards) const {
  return std::make_unique<IndexReader>(*dataset_, shard, num_shards);
}

std::optional<DatasetSpec> DatasetStream::spec() const {
  const auto inner = dataset_->spec();
  if (!inner) return std::nullopt;
  State params;
  params.set("name", inner->name);
  params.set("plugin", inner->plugin);
  params.set("params", inner->params);
  if (inner->params.contains("fds")) params.set("fds", inner->params.get_ints("fds"));
  return DatasetSpec{"dataset_stream", std::move(params), {}};
}

}  // namespace infeed

#include "infeed/dataset/dataset.h"

namespace infeed {

Dataset::~Dataset() = default;
void Dataset::prefetch(std::int64_t /*index*/) const noexcept {}
std::optional<DatasetSpec> Dataset::spec() const { return std::nullopt; }
std::string Dataset::describe(std::int64_t /*index*/) const { return {}; }

StreamReader::~StreamReader() = default;

Stream::~Stream() = default;
std::optional<std::int64_t> Stream::size() const { return std::nullopt; }
std::optional<DatasetSpec> Stream::spec() const { return std::nullopt; }

}  // namespace infeed

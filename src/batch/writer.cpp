#include "batch/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "infeed/base/error.h"

namespace infeed {

BatchWriter::BatchWriter(std::span<std::byte> extent) : extent_(extent) {
  if (extent.size() < kArraysBegin)
    throw MemoryError(fmt::format("an extent of {} bytes cannot hold a batch's header of {}. Raise extent_bytes.",
                                  extent.size(), kArraysBegin));
  // What lies here may be an older batch: it must not pass for this one if we die before finish().
  std::memset(extent.data(), 0, sizeof(BatchHeader));
}

void BatchWriter::check_name(std::string_view name) const {
  if (name.empty() || name.size() > kMaxNameBytes || name.find('\0') != std::string_view::npos)
    throw ConfigError(
        fmt::format("a batch's array is named '{}': names have 1 to {} bytes, none zero.", name, kMaxNameBytes));
  if (std::any_of(records_.begin(), records_.end(), [&](const ArrayRecord& r) { return name == r.name; }))
    throw ConfigError(fmt::format("two arrays of a batch are named '{}'. Names must differ.", name));
  if (records_.size() == kMaxArrays)
    throw ConfigError(fmt::format("a batch has at most {} arrays; '{}' is one more.", kMaxArrays, name));
}

ArrayView BatchWriter::add(std::string_view name, DType dtype, const Shape& shape) {
  check_name(name);
  const auto nbytes = checked_nbytes(dtype, shape);
  if (!nbytes) throw ConfigError(fmt::format("array '{}' of a batch cannot have shape {}.", name, shape.str()));
  const std::size_t offset = align_up(end_, kArrayAlign);
  if (offset > extent_.size() || *nbytes > extent_.size() - offset)
    throw MemoryError(
        fmt::format("array '{}' ({} {}) makes the batch {} bytes long, its extent has {}. Raise extent_bytes, or lower "
                    "batch_size.",
                    name, to_string(dtype), shape.str(), offset + *nbytes, extent_.size()));
  ArrayRecord& record = records_.emplace_back();
  std::copy(name.begin(), name.end(), record.name);
  record.dtype = static_cast<std::uint8_t>(dtype);
  record.ndim = static_cast<std::uint8_t>(shape.ndim());
  record.offset = offset;
  record.nbytes = *nbytes;
  std::copy(shape.begin(), shape.end(), record.shape);
  end_ = offset + *nbytes;
  return ArrayView(extent_.data() + offset, dtype, shape);
}

std::size_t BatchWriter::finish() noexcept {
  BatchHeader header;
  header.num_arrays = static_cast<std::uint16_t>(records_.size());
  header.used_bytes = end_;
  if (!records_.empty())
    std::memcpy(extent_.data() + sizeof(header), records_.data(), records_.size() * sizeof(ArrayRecord));
  std::memcpy(extent_.data(), &header, sizeof(header));
  return end_;
}

}  // namespace infeed

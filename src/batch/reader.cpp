#include "batch/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw DataError("a worker handed over a batch that cannot be right: " +
                  fmt::format(text, std::forward<Args>(args)...) + " The worker is damaged, or of another version.");
}

BatchHeader read_header(std::span<const std::byte> extent) {
  if (extent.size() < kArraysBegin) refuse("it has {} bytes, its header alone {}.", extent.size(), kArraysBegin);
  BatchHeader header;
  std::memcpy(&header, extent.data(), sizeof(header));
  if (header.magic != kBatchMagic) refuse("its first word is {:#010x}, not {:#010x}.", header.magic, kBatchMagic);
  if (header.version != kBatchVersion) refuse("it has version {}, not {}.", header.version, kBatchVersion);
  if (header.num_arrays > kMaxArrays) refuse("it claims {} arrays, at most {} exist.", header.num_arrays, kMaxArrays);
  if (header.used_bytes < kArraysBegin || header.used_bytes > extent.size())
    refuse("it claims {} bytes, outside [{}, {}].", header.used_bytes, kArraysBegin, extent.size());
  return header;
}

std::string read_name(const ArrayRecord& record, std::size_t position) {
  const auto* end = static_cast<const char*>(std::memchr(record.name, 0, sizeof(record.name)));
  if (end == nullptr || end == record.name) refuse("the name of array {} is empty or does not end.", position);
  std::string name(record.name, end);
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    refuse("the name of array {} holds control characters.", position);
  return name;
}

Shape read_shape(const ArrayRecord& record, const std::string& name) {
  if (record.dtype >= kNumDTypes) refuse("array '{}' has dtype number {}.", name, record.dtype);
  if (record.ndim > kMaxDims) refuse("array '{}' has {} dimensions.", name, record.ndim);
  const Shape shape(std::span<const std::int64_t>(record.shape, record.ndim));
  const auto nbytes = checked_nbytes(static_cast<DType>(record.dtype), shape);
  if (!nbytes || *nbytes != record.nbytes)
    refuse("array '{}' of shape {} claims {} bytes.", name, shape.str(), record.nbytes);
  return shape;
}

}  // namespace

std::vector<NamedArray> read_batch(std::span<std::byte> extent) {
  const BatchHeader header = read_header(extent);
  std::vector<ArrayRecord> records(header.num_arrays);
  if (!records.empty())
    std::memcpy(records.data(), extent.data() + sizeof(header), records.size() * sizeof(ArrayRecord));

  std::vector<NamedArray> arrays;
  arrays.reserve(records.size());
  std::uint64_t end = kArraysBegin;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const ArrayRecord& record = records[i];
    std::string name = read_name(record, i);
    const Shape shape = read_shape(record, name);
    if (record.offset < end || record.offset % kArrayAlign != 0 || record.offset > header.used_bytes ||
        record.nbytes > header.used_bytes - record.offset)
      refuse("array '{}' lies at {} + {} bytes; the one before ends at {}, the batch at {}.", name, record.offset,
             record.nbytes, end, header.used_bytes);
    if (std::any_of(arrays.begin(), arrays.end(), [&](const NamedArray& a) { return a.name == name; }))
      refuse("two arrays are named '{}'.", name);
    end = record.offset + record.nbytes;
    arrays.push_back(
        {std::move(name), ArrayView(extent.data() + record.offset, static_cast<DType>(record.dtype), shape)});
  }
  return arrays;
}

}  // namespace infeed

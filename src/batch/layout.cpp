#include "batch/layout.h"

#include <fmt/format.h>

#include <utility>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {

BatchLayout::BatchLayout(Schema schema, int max_rows) : schema_(std::move(schema)), max_rows_(max_rows) {
  if (max_rows < 1)
    throw ConfigError(fmt::format("a batch of {} rows was asked for; batch_size is 1 or more.", max_rows));
  std::size_t end = 0;
  for (const Field& field : schema_.fields()) {
    if (field.variable())
      throw ConfigError(fmt::format("field '{}' has shape {}: variable fields need a collate (pad or ragged).",
                                    field.name, field.shape.str()));
    const auto row = checked_nbytes(field.dtype, field.shape);
    const auto array =
        field.shape.ndim() < kMaxDims ? checked_nbytes(field.dtype, field.shape.with_front(max_rows)) : std::nullopt;
    offsets_.push_back(align_up(end, kArrayAlign));
    if (!row || !array || __builtin_add_overflow(offsets_.back(), *array, &end) || end > (std::size_t{1} << 62))
      throw ConfigError(
          fmt::format("{} rows of field '{}' ({} {}) cannot form an array: at most {} dimensions with the "
                      "batch's own, and 2^62 bytes. Lower batch_size ({}).",
                      max_rows, field.name, to_string(field.dtype), field.shape.str(), kMaxDims, max_rows));
    row_bytes_.push_back(*row);
  }
}

std::size_t BatchLayout::nbytes(int rows) const noexcept {
  if (offsets_.empty() || rows == 0) return 0;
  return offsets_.back() + row_bytes_.back() * static_cast<std::size_t>(rows);
}

void BatchLayout::fill_row_views(std::byte* extent, int row, std::span<ArrayView> out) const noexcept {
  for (std::size_t f = 0; f < offsets_.size(); ++f)
    out[f] = ArrayView(extent + offsets_[f] + row_bytes_[f] * static_cast<std::size_t>(row), schema_[f].dtype,
                       schema_[f].shape);
}

void BatchLayout::move_row_views(std::byte* extent, int row, std::span<ArrayView> out) const noexcept {
  for (std::size_t f = 0; f < offsets_.size(); ++f)
    out[f].data = extent + offsets_[f] + row_bytes_[f] * static_cast<std::size_t>(row);
}

std::vector<NamedArray> BatchLayout::arrays(std::byte* extent, int rows) const {
  std::vector<NamedArray> arrays;
  arrays.reserve(schema_.size());
  for (std::size_t f = 0; f < schema_.size(); ++f)
    arrays.push_back(
        {schema_[f].name, ArrayView(extent + offsets_[f], schema_[f].dtype, schema_[f].shape.with_front(rows))});
  return arrays;
}

}  // namespace infeed

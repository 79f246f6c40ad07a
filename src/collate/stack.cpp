#include "infeed/collate/stack.h"

#include <fmt/format.h>

#include <cstring>

#include "collate/stack_rows.h"
#include "infeed/base/error.h"

namespace infeed {

Shape with_variable(const Shape& shape, std::int64_t size) {
  Shape result = shape;
  for (int dim = 0; dim < result.ndim(); ++dim) {
    if (result[dim] < 0) result[dim] = size;
  }
  return result;
}

void stack_rows(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out) {
  const Shape shape = rows.empty() ? with_variable(field.shape, 0) : rows.front().shape;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].shape != shape)
      throw DataError(fmt::format(
          "field '{}' cannot be stacked: row {} of the batch has shape {}, row 0 has {}. Use pad or ragged.",
          field.name, i, rows[i].shape.str(), shape.str()));
  }
  const ArrayView batch = out.add(field.name, field.dtype, shape.with_front(static_cast<std::int64_t>(rows.size())));
  const std::size_t row_bytes = rows.empty() ? 0 : rows.front().nbytes();
  if (row_bytes == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) std::memcpy(batch.data + i * row_bytes, rows[i].data, row_bytes);
}

void StackCollate::operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                              CollateOutput& out) const {
  for (std::size_t f = 0; f < schema.size(); ++f) stack_rows(schema[f], rows[f], out);
}

}  // namespace infeed

#include "infeed/collate/ragged.h"

#include <fmt/format.h>

#include <cstring>

#include "collate/stack_rows.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

int first_variable(const Field& field) {
  int dim = 0;
  while (field.shape[dim] >= 0) ++dim;
  return dim;
}

/// Shape of all rows joined along `dim`.
Shape joined_shape(const Field& field, const std::vector<ArrayView>& rows, int dim) {
  Shape joined = with_variable(rows.empty() ? field.shape : rows.front().shape, 0);
  joined[dim] = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Shape expected = joined;
    expected[dim] = rows[i].shape[dim];
    if (rows[i].shape != expected)
      throw DataError(
          fmt::format("field '{}' is ragged in more than one dimension: row {} of the batch has shape {}, row "
                      "0 has {}. Use pad.",
                      field.name, i, rows[i].shape.str(), rows.front().shape.str()));
    joined[dim] += rows[i].shape[dim];
  }
  return joined;
}

/// Bytes of one step along `dim`.
std::size_t step_bytes(DType dtype, const Shape& shape, int dim) {
  return static_cast<std::size_t>(Strides::contiguous(shape)[dim]) * itemsize(dtype);
}

void join_field(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out) {
  const int dim = first_variable(field);
  const Shape joined = joined_shape(field, rows, dim);
  const ArrayView values = out.add(field.name, field.dtype, joined);
  const Shape offsets_shape{static_cast<std::int64_t>(rows.size()) + 1};
  auto* offsets = out.add(field.name + ".offsets", DType::kInt64, offsets_shape).as<std::int64_t>();
  *offsets = 0;
  for (const ArrayView& row : rows) {
    offsets[1] = offsets[0] + row.shape[dim];
    ++offsets;
  }
  if (values.numel() == 0) return;
  const std::size_t step = step_bytes(field.dtype, joined, dim);
  const std::int64_t outer = Shape(joined.span().first(static_cast<std::size_t>(dim))).numel();
  std::byte* end = values.data;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const ArrayView& row : rows) {
      const std::size_t nbytes = static_cast<std::size_t>(row.shape[dim]) * step;
      std::memcpy(end, row.data + static_cast<std::size_t>(o) * nbytes, nbytes);
      end += nbytes;
    }
  }
}

}  // namespace

void RaggedCollate::operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                               CollateOutput& out) const {
  for (std::size_t f = 0; f < schema.size(); ++f) {
    if (schema[f].variable())
      join_field(schema[f], rows[f], out);
    else
      stack_rows(schema[f], rows[f], out);
  }
}

}  // namespace infeed

#include "batch/rows.h"

#include <fmt/format.h>

#include <utility>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {

RowWriter::RowWriter(const BatchLayout& layout) : layout_(&layout), views_(layout.schema().size()) {
  layout.fill_row_views(nullptr, 0, views_);
}

RowGather::RowGather(Schema schema) : schema_(std::move(schema)), views_(schema_.size()), fields_(schema_.size()) {}

void RowGather::start_batch() noexcept {
  scratch_.reset();
  for (auto& rows : fields_) rows.clear();
  num_rows_ = 0;
  latest_ = nullptr;
}

Row RowGather::start_row(const SampleContext& context) {
  index_ = context.index;
  latest_ = nullptr;
  for (std::size_t f = 0; f < schema_.size(); ++f) {
    const Field& field = schema_[f];
    views_[f] = field.variable()
                    ? ArrayView(nullptr, field.dtype, Shape{0})
                    : ArrayView(scratch_.allocate(*checked_nbytes(field.dtype, field.shape)), field.dtype, field.shape);
  }
  return Row(schema_, views_, context, this);
}

void RowGather::commit_row() {
  for (std::size_t f = 0; f < schema_.size(); ++f) {
    if (views_[f].data == nullptr)
      throw DataError(fmt::format("sample {}: the dataset gave its variable field '{}' no size. Call row.resize().",
                                  index_, schema_[f].name));
  }
  for (std::size_t f = 0; f < schema_.size(); ++f) fields_[f].push_back(views_[f]);
  ++num_rows_;
}

std::byte* RowGather::allocate(std::size_t field, const Shape& /*shape*/, std::size_t nbytes) {
  if (latest_ != nullptr && latest_field_ == field) scratch_.undo(latest_);
  latest_ = nullptr;
  std::byte* start = scratch_.allocate(nbytes);
  latest_ = start;
  latest_field_ = field;
  return start;
}

}  // namespace infeed

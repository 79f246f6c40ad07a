#include "infeed/batch/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

bool fits(const Shape& shape, const Shape& pattern) noexcept {
  if (shape.ndim() != pattern.ndim()) return false;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    if (pattern[dim] >= 0 ? shape[dim] != pattern[dim] : shape[dim] < 0) return false;
  }
  return true;
}

std::string names_of(const Schema& schema) {
  std::vector<std::string_view> names;
  for (const Field& field : schema.fields()) names.push_back(field.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

VariableStore::~VariableStore() = default;

void Row::throw_no_field(std::size_t field) const {
  throw IndexError(
      fmt::format("field {} does not exist: the schema has {} fields, counted from 0.", field, arrays_.size()));
}

const ArrayView& Row::at(std::string_view name) const {
  if (const auto field = schema_->find(name)) return arrays_[*field];
  throw IndexError(fmt::format("a sample has no field '{}'. Its fields: {}.", name, names_of(*schema_)));
}

const ArrayView& Row::resize(std::size_t field, const Shape& shape) {
  if (field >= schema_->size())
    throw IndexError(fmt::format("field {} of a sample was resized, but it has {} fields.", field, schema_->size()));
  const Field& wanted = (*schema_)[field];
  const auto nbytes = checked_nbytes(wanted.dtype, shape);
  if (!fits(shape, wanted.shape) || !nbytes)
    throw ConfigError(fmt::format("field '{}' of sample {} was resized to {}, its schema says {}.", wanted.name,
                                  context_.index, shape.str(), wanted.shape.str()));
  if (!wanted.variable()) return arrays_[field];
  if (store_ == nullptr)
    throw ConfigError(fmt::format("field '{}' is variable, but this row lies in a batch of fixed size.", wanted.name));
  return arrays_[field] = ArrayView(store_->allocate(field, shape, *nbytes), wanted.dtype, shape);
}

}  // namespace infeed

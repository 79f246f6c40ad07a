#include "infeed/batch/schema.h"

#include <fmt/format.h>

#include <utility>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

void check_field(const Field& field, std::size_t position) {
  if (field.name.empty()) throw ConfigError(fmt::format("field {} of a schema has no name. Name it.", position));
  if (field.name.size() > kMaxNameBytes)
    throw ConfigError(fmt::format("field name '{}' has {} bytes, at most {} are supported.", field.name,
                                  field.name.size(), kMaxNameBytes));
  if (field.name.find('\0') != std::string::npos)
    throw ConfigError(fmt::format("field name '{}' holds a zero byte.", field.name.c_str()));
  for (const std::int64_t size : field.shape) {
    if (size < -1)
      throw ConfigError(fmt::format("field '{}' has shape {}: a size is 0 or more, or -1 where it is variable.",
                                    field.name, field.shape.str()));
  }
  if (!field.variable() && !checked_nbytes(field.dtype, field.shape))
    throw ConfigError(fmt::format("field '{}' of {} {} has more bytes than 63 bits count.", field.name,
                                  to_string(field.dtype), field.shape.str()));
}

}  // namespace

Schema::Schema(std::vector<Field> fields) : fields_(std::move(fields)) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    check_field(fields_[i], i);
    if (find(fields_[i].name) != i)
      throw ConfigError(fmt::format("two fields of a schema are named '{}'. Names must differ.", fields_[i].name));
  }
}

std::optional<std::size_t> Schema::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return i;
  }
  return std::nullopt;
}

bool Schema::fixed() const noexcept {
  for (const Field& field : fields_) {
    if (field.variable()) return false;
  }
  return true;
}

std::size_t Schema::row_bytes() const {
  std::size_t sum = 0;
  for (const Field& field : fields_) {
    if (field.variable()) continue;
    if (__builtin_add_overflow(sum, *checked_nbytes(field.dtype, field.shape), &sum))
      throw ConfigError("the fields of a sample have more bytes than 64 bits count.");
  }
  return sum;
}

State Schema::to_state() const {
  std::vector<State> fields;
  for (const Field& field : fields_) {
    State entry;
    entry.set("name", field.name);
    entry.set("dtype", to_string(field.dtype));
    entry.set("shape", std::vector<std::int64_t>(field.shape.begin(), field.shape.end()));
    fields.push_back(std::move(entry));
  }
  State state;
  state.set("fields", fields);
  return state;
}

Schema Schema::from_state(const State& state) {
  std::vector<Field> fields;
  for (const State& entry : state.get_states("fields"))
    fields.push_back(
        {entry.get_string("name"), dtype_from_string(entry.get_string("dtype")), Shape(entry.get_ints("shape"))});
  return Schema(std::move(fields));
}

}  // namespace infeed

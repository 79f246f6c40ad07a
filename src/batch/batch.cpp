#include "infeed/batch/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infeed/base/error.h"

namespace infeed {

BatchArray Batch::at(std::string_view name) const {
  for (const NamedArray& named : arrays_) {
    if (named.name == name) return {named.array, owner_};
  }
  std::vector<std::string_view> names;
  for (const NamedArray& named : arrays_) names.push_back(named.name);
  throw IndexError(fmt::format("batch {} has no array '{}'. Its arrays: {}.", number_, name, fmt::join(names, ", ")));
}

bool Batch::contains(std::string_view name) const noexcept {
  return std::any_of(arrays_.begin(), arrays_.end(), [&](const NamedArray& named) { return named.name == name; });
}

void Batch::release() noexcept {
  arrays_.clear();
  owner_.reset();
}

}  // namespace infeed

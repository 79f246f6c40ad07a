#pragma once
/// What a module or an optimizer keeps, under names.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Tensors by name, and whatever else JSON holds. Values copy; tensors are handles, so clone() what must stay.
struct INFEED_API StateDict {
  std::vector<NamedTensor> tensors;
  State state;

  StateDict() = default;
  StateDict(std::vector<NamedTensor> of) : tensors(std::move(of)) {}  // NOLINT: implicit on purpose
  StateDict(std::initializer_list<NamedTensor> of) : tensors(of) {}
  StateDict(State of) : state(std::move(of)) {}  // NOLINT: implicit on purpose

  /// The tensor of that name; an undefined one if there is none.
  [[nodiscard]] Tensor find(std::string_view name) const {
    for (const NamedTensor& entry : tensors)
      if (entry.name == name) return entry.tensor;
    return {};
  }
};

}  // namespace infeed

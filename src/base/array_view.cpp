#include "infeed/base/array_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"

namespace infeed {

bool ArrayView::is_contiguous() const noexcept {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;  // no elements, no gaps
  std::int64_t step = 1;
  for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
    if (shape[dim] != 1 && strides[dim] != step) return false;
    step *= shape[dim];
  }
  return true;
}

ArrayView ArrayView::at(std::int64_t i) const {
  if (shape.empty()) throw IndexError("a scalar array has no items to index.");
  if (i < 0 || i >= shape[0])
    throw IndexError(fmt::format("index {} is outside the first dimension of {}.", i, shape.str()));
  ArrayView view;
  view.data = data + i * strides[0] * static_cast<std::int64_t>(itemsize(dtype));
  view.dtype = dtype;
  view.shape = shape.without_front();
  view.strides = Strides(strides.span().subspan(1));
  view.device = device;
  return view;
}

void ArrayView::check_dtype(DType asked) const {
  if (asked != dtype) throw ConfigError(fmt::format("array holds {}, not {}.", to_string(dtype), to_string(asked)));
}

}  // namespace infeed

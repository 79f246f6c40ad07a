#include "autocast.h"

#include "binder.h"

namespace infeed::python {
namespace {

// float64 and integers stay as they are.
Tensor converted(const Tensor& x, DType dtype) {
  if (!autocast().enabled || !x.defined() || !is_floating_point(x.dtype()) || x.dtype() == DType::kFloat64) return x;
  return x.dtype() == dtype || x.is_meta() ? x : x.to(dtype);
}

}  // namespace

AutocastState& autocast() noexcept {
  thread_local AutocastState state;
  return state;
}

Tensor lowered(const Tensor& x) { return converted(x, autocast().dtype); }
Tensor lifted(const Tensor& x) { return converted(x, DType::kFloat32); }

void bind_autocast(nb::module_& module) {
  module.def("_autocast", [] { return nb::make_tuple(autocast().enabled, autocast().dtype); });
  module.def("_set_autocast", [](bool enabled, DType dtype) { autocast() = {enabled, dtype}; });
}

}  // namespace infeed::python

#include "leaves.h"

#include <algorithm>

#include "infeed/base/copy.h"
#include "leaf_copy.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

}  // namespace

void LeafView::measure() {
  const auto item = static_cast<std::int64_t>(item_bytes(dtype));
  numel = 1;
  contiguous = true;
  for (int d = ndim; d-- > 0;) {
    if (shape[d] != 1 && strides[d] != static_cast<std::int64_t>(numel) * item) contiguous = false;
    numel *= static_cast<std::size_t>(shape[d]);
  }
  if (numel == 0) contiguous = true;
}

std::size_t LeafView::span_bytes() const {
  if (numel == 0) return 0;
  std::size_t span = item_bytes(dtype);
  for (int d = 0; d < ndim; ++d) span += static_cast<std::size_t>((shape[d] - 1) * strides[d]);
  return span;
}

void LeafView::copy_to(std::byte* out) const {
  const auto copy = [&] {
    if (contiguous)
      copy_bytes(out, data, nbytes());
    else
      copy_strided(out, data, dims(), steps(), item_bytes(dtype));
  };
  if (nbytes() < kUnlockBytes) return copy();
  const nb::gil_scoped_release unlocked;
  copy();
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

void Owner::drop() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!interpreter_ends()) {  // else the memory goes with the process
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }
  delete this;
}

}  // namespace infeed::python

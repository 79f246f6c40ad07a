#pragma once
/// dtype, device and Size: small values with PyTorch's names.

#include "convert.h"

namespace infeed::python {

/// One object a dtype: `x.dtype is train.float32`.
struct DTypeObject {
  DType dtype;
};

struct DeviceObject {
  DeviceId id;
  bool indexed = false;  ///< "cuda:0" rather than "cuda"
  friend bool operator==(const DeviceObject&, const DeviceObject&) = default;
};

void bind_types(nb::module_& module);

}  // namespace infeed::python

#pragma once
/// What the plugin computes: kernels/table.cpp where it is built for a GPU, else nothing (kernels_none.cpp).

#include "infeed/plugin/kernel_abi.h"

namespace infeed::cuda {

/// Null where it has none.
[[nodiscard]] const infeed_kernel_api* kernels() noexcept;

}  // namespace infeed::cuda

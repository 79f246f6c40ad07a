#pragma once
/// The kernels of the simulated device: the host twins, as work of its compute engine. A queue's device is the
/// SimulatedCore, its stream the SimQueue.

#include "infeed/plugin/kernel_abi.h"

namespace infeed {

[[nodiscard]] const infeed_kernel_api& simulated_kernels() noexcept;

}  // namespace infeed

#pragma once
/// Devices under tensors: `x.to(device_from_string("cuda:0"))` opens one at first use, with a cache of its memory and one
/// stream in which all work of its tensors is done in order.
///
/// What a device computes: docs/train.md. A function that has no kernel there throws NotImplementedError naming itself,
/// the device and the way out; the host never reads a device's memory.
/// Threads: any. Errors: work fails late (infeed/device/device.h); a failure is thrown where a value is fetched.

#include <memory>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"
#include "infeed/train/tensor/allocator.h"

namespace infeed {

class Device;
class DeviceStream;

/// Tensors made from now on on device->id() live there: for a device with options of one's own. Else
/// open_device("kind:index") is asked.
INFEED_API void use_device(std::shared_ptr<Device> device);
/// Lets go of it: what is free is given back now, the rest with the last tensor.
INFEED_API void release_device(DeviceId id);

/// The stream of tensors on that device (CUDA: the default stream): a loader's compute_stream. Valid until
/// release_device().
[[nodiscard]] INFEED_API DeviceStream& device_stream(DeviceId id);
/// Waits for all work of its tensors. Throws DeviceError where it failed.
INFEED_API void synchronize(DeviceId id);
[[nodiscard]] INFEED_API MemoryStats device_memory_stats(DeviceId id);
/// Gives free blocks back to the device.
INFEED_API void empty_device_cache(DeviceId id);

}  // namespace infeed

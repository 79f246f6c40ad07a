/// The table of NVIDIA's devices. Peer access stays off: every copy is between the host and one device, or within one.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "calls.h"
#include "context.h"
#include "infeed/base/export.h"
#include "infeed/plugin/abi.h"
#include "infeed/plugin/device_abi.h"
#include "kernels.h"

namespace infeed::cuda {
namespace {

constexpr std::int32_t kCudaDevice = 2;  // DeviceType::kCUDA, DLPack's kDLCUDA

int count(std::int32_t* devices, char* error, std::uint64_t size) {
  return check(cudaGetDeviceCount(devices), "cudaGetDeviceCount", {error, size});
}

int open(std::int32_t index, void** device, char* error, std::uint64_t size) {
  return Context::open(index, device, {error, size});
}

void close(void* device) { delete static_cast<Context*>(device); }

int describe(void* device, char* name, std::uint64_t name_bytes, char* error, std::uint64_t size) {
  cudaDeviceProp properties{};
  const int index = static_cast<const Context*>(device)->index();
  const int code = check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties", {error, size});
  std::snprintf(name, name_bytes, "%s", properties.name);
  return code;
}

const infeed_device_api kDevices{.struct_size = sizeof(infeed_device_api),
                                 .name = "cuda",
                                 .device_type = kCudaDevice,
                                 .reserved = 0,
                                 .count = count,
                                 .open = open,
                                 .close = close,
                                 .describe = describe,
                                 .memory_info = memory_info,
                                 .allocate = allocate,
                                 .release = release,
                                 .register_host = register_host,
                                 .unregister_host = unregister_host,
                                 .create_stream = create_stream,
                                 .destroy_stream = destroy_stream,
                                 .copy = copy,
                                 .fill = fill,
                                 .launch = launch,
                                 .query_stream = query_stream,
                                 .synchronize_stream = synchronize_stream,
                                 .create_event = create_event,
                                 .destroy_event = destroy_event,
                                 .record = record,
                                 .record_all = record_all,
                                 .wait = wait,
                                 .query_event = query_event,
                                 .synchronize_event = synchronize_event,
                                 .elapsed_ms = elapsed_ms,
                                 .synchronize = synchronize,
                                 .push_range = push_range,
                                 .pop_range = pop_range,
                                 .kernels = kernels()};
const infeed_device_api* const kKinds[] = {&kDevices};

}  // namespace
}  // namespace infeed::cuda

extern "C" INFEED_API const infeed_plugin* infeed_plugin_v1() {
  static const infeed_plugin kTable{.struct_size = sizeof(infeed_plugin),
                                    .magic = INFEED_PLUGIN_MAGIC,
                                    .abi_major = INFEED_ABI_MAJOR,
                                    .abi_minor = INFEED_ABI_MINOR,
                                    .name = "cuda",
                                    .version = "0.1",
                                    .num_devices = 1,
                                    .devices = infeed::cuda::kKinds};
  return &kTable;
}

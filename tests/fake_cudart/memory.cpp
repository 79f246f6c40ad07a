// Devices, their memory, registration of the host's.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "fake_cudart/runtime.h"

using infeed::fake::Caller;
using infeed::fake::perform;
using infeed::fake::Runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return perform("cudaGetDeviceCount", [&](Runtime& runtime, Caller&) {
    *count = runtime.options().devices;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return perform("cudaGetDevice", [&](Runtime&, Caller& caller) {
    *device = caller.current();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return perform("cudaSetDevice", [&](Runtime& runtime, Caller& caller) {
    if (device < 0 || device >= runtime.options().devices) return cudaErrorInvalidDevice;
    caller.device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return perform("cudaGetDeviceProperties", [&](Runtime& runtime, Caller&) {
    if (device < 0 || device >= runtime.options().devices) return cudaErrorInvalidDevice;
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "stand-in accelerator");
    properties->totalGlobalMem = runtime.options().memory_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return perform("cudaMemGetInfo", [&](Runtime& runtime, Caller& caller) {
    const infeed::DeviceMemoryInfo info = runtime.device(caller.current())->memory_info();
    *free = info.free_bytes;
    *total = info.total_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** ptr, std::size_t bytes) {
  return perform("cudaMalloc", [&](Runtime& runtime, Caller& caller) {
    *ptr = runtime.device(caller.current())->allocate(bytes);
    if (*ptr != nullptr) runtime.add_allocation(*ptr, caller.current());
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* ptr) {
  return perform("cudaFree", [&](Runtime& runtime, Caller&) {
    if (ptr == nullptr) return cudaSuccess;
    const int device = runtime.device_of(ptr);
    if (device < 0) return runtime.complain("cudaFree", "not allocated, or freed before", cudaErrorInvalidValue);
    runtime.device(device)->free(ptr);  // throws where work that uses it is pending
    runtime.remove_allocation(ptr);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* ptr, std::size_t bytes, unsigned int) {
  return perform("cudaHostRegister", [&](Runtime& runtime, Caller&) {
    if (ptr == nullptr || bytes == 0) return cudaErrorInvalidValue;
    if (!runtime.add_registration(reinterpret_cast<std::uintptr_t>(ptr), bytes))
      return runtime.complain("cudaHostRegister", "shares a page with what is registered",
                              cudaErrorHostMemoryAlreadyRegistered);
    for (const auto& device : runtime.devices()) device->register_host(ptr, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* ptr) {
  return perform("cudaHostUnregister", [&](Runtime& runtime, Caller&) {
    if (!runtime.knows_registration(ptr))
      return runtime.complain("cudaHostUnregister", "not registered", cudaErrorHostMemoryNotRegistered);
    for (const auto& device : runtime.devices()) device->unregister_host(ptr);  // throws where it is in use
    runtime.remove_registration(ptr);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return perform("cudaDeviceSynchronize", [&](Runtime& runtime, Caller& caller) {
    runtime.device(caller.current())->synchronize();
    return cudaSuccess;
  });
}

// --- errors: no calls of their own, they always answer ---

cudaError_t cudaPeekAtLastError() { return Caller::instance().last_error; }

cudaError_t cudaGetLastError() { return std::exchange(Caller::instance().last_error, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorHostMemoryAlreadyRegistered: return "cudaErrorHostMemoryAlreadyRegistered";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    default: return "cudaErrorOfTheStandIn";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    default: return "as its name says";
  }
}

}  // extern "C"

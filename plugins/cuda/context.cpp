#include "context.h"

#include <cstdio>
#include <memory>
#include <new>

namespace infeed::cuda {
namespace {

constexpr unsigned kVersion = 13000;  // of the driver functions asked for: those that the headers declare

// After these every call fails, until the process ends.
bool is_lost(cudaError_t result) noexcept {
  switch (result) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorCudartUnloading: return true;
    default: return false;
  }
}

const char* advice(cudaError_t result) noexcept {
  switch (result) {
    case cudaErrorInsufficientDriver:
      return " There is no driver here, or one older than CUDA 13 asks for: install NVIDIA's driver 580 or newer.";
    case cudaErrorNoDevice: return " No GPU is visible: see CUDA_VISIBLE_DEVICES, and nvidia-smi.";
    case cudaErrorInitializationError: return " A process that was forked from one that used CUDA cannot use it.";
    case cudaErrorHostMemoryAlreadyRegistered: return " Someone else page-locked a part of it.";
    default: return "";
  }
}

template <typename Function>
bool ask(const char* name, Function& function) noexcept {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &status);
  function = reinterpret_cast<Function>(found);
  return result == cudaSuccess && status == cudaDriverEntryPointSuccess && found != nullptr;
}

bool ask_all(Driver& driver) noexcept {
  return ask("cuDeviceGet", driver.device_get) && ask("cuDevicePrimaryCtxRetain", driver.retain) &&
         ask("cuDevicePrimaryCtxRelease", driver.release) && ask("cuCtxPushCurrent", driver.push) &&
         ask("cuCtxPopCurrent", driver.pop) && ask("cuCtxRecordEvent", driver.record_all);
}

}  // namespace

int check(cudaError_t result, const char* function, Text error) noexcept {
  if (result == cudaSuccess) return INFEED_OK;
  static_cast<void>(cudaGetLastError());
  std::snprintf(error.data, error.bytes, "%s: %s (%s, %d).%s", function, cudaGetErrorString(result),
                cudaGetErrorName(result), static_cast<int>(result), advice(result));
  if (result == cudaErrorMemoryAllocation) return INFEED_ERROR_MEMORY;
  return is_lost(result) ? INFEED_ERROR_DEVICE_LOST : INFEED_ERROR_DEVICE;
}

int Current::lost(Text error) const noexcept {
  std::snprintf(error.data, error.bytes, "the context of cuda:%d is gone: somebody called cudaDeviceReset.",
                context_.index());
  return INFEED_ERROR_DEVICE_LOST;
}

int Context::open(std::int32_t index, void** device, Text error) noexcept {
  int count = 0;
  if (const int code = check(cudaGetDeviceCount(&count), "cudaGetDeviceCount", error)) return code;
  if (index < 0 || index >= count) {
    std::snprintf(error.data, error.bytes, "there are %d devices here, cuda:0 to cuda:%d.", count, count - 1);
    return INFEED_ERROR_DEVICE;
  }
  Driver driver;
  if (!ask_all(driver)) {
    static_cast<void>(cudaGetLastError());
    std::snprintf(error.data, error.bytes, "the driver is older than CUDA 13 asks for: install 580 or newer.");
    return INFEED_ERROR_DEVICE;
  }
  CUdevice ordinal = 0;
  CUcontext context = nullptr;
  CUresult result = driver.device_get(&ordinal, index);
  if (result == CUDA_SUCCESS) result = driver.retain(&context, ordinal);
  if (result != CUDA_SUCCESS) {
    std::snprintf(error.data, error.bytes, "cuDevicePrimaryCtxRetain failed with CUresult %d%s",
                  static_cast<int>(result),
                  result == CUDA_ERROR_OUT_OF_MEMORY ? ": the device's memory is full." : ".");
    return INFEED_ERROR_DEVICE;
  }
  *device = new (std::nothrow) Context(index, ordinal, context, driver);
  if (*device != nullptr) return INFEED_OK;
  driver.release(ordinal);
  return INFEED_ERROR_MEMORY;
}

}  // namespace infeed::cuda

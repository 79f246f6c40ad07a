// What is asked of the driver through the runtime.
#include <cuda.h>

#include <cstring>

#include "fake_cudart/runtime.h"

using infeed::fake::Caller;
using infeed::fake::Event;
using infeed::fake::perform;
using infeed::fake::Runtime;

namespace {

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < Runtime::instance().options().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult retain(CUcontext* context, CUdevice device) {
  Runtime& runtime = Runtime::instance();
  if (runtime.enter("cuDevicePrimaryCtxRetain") != cudaSuccess) return CUDA_ERROR_UNKNOWN;
  runtime.retain(device, 1);
  *context = reinterpret_cast<CUcontext>(runtime.context(device));
  return CUDA_SUCCESS;
}

CUresult release(CUdevice device) {
  Runtime::instance().retain(device, -1);
  return CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  const int index = Runtime::instance().index_of(context);
  const bool gone =
      Runtime::instance().owned_here() && Runtime::instance().take_fault("cuCtxPushCurrent") != cudaSuccess;
  if (index < 0 || gone) return CUDA_ERROR_INVALID_CONTEXT;
  Caller::instance().contexts.push_back(index);
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* context) {
  Caller& caller = Caller::instance();
  if (caller.contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = nullptr;
  caller.contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult record_all(CUcontext context, CUevent handle) {
  const cudaError_t result = perform("cuCtxRecordEvent", [&](Runtime& runtime, Caller&) {
    const std::shared_ptr<Event> event = runtime.event(handle);
    const int index = runtime.index_of(context);
    if (event == nullptr || event->device != index) return cudaErrorInvalidResourceHandle;
    runtime.device(index)->record_all(*event->mark);
    event->recorded = true;
    return cudaSuccess;
  });
  return result == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void* find(const char* name) {
  const auto is = [name](const char* known) { return std::strcmp(name, known) == 0; };
  if (is("cuDeviceGet")) return reinterpret_cast<void*>(&device_get);
  if (is("cuDevicePrimaryCtxRetain")) return reinterpret_cast<void*>(&retain);
  if (is("cuDevicePrimaryCtxRelease")) return reinterpret_cast<void*>(&release);
  if (is("cuCtxPushCurrent")) return reinterpret_cast<void*>(&push);
  if (is("cuCtxPopCurrent")) return reinterpret_cast<void*>(&pop);
  if (is("cuCtxRecordEvent")) return reinterpret_cast<void*>(&record_all);
  return nullptr;
}

}  // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                                        unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return perform("cudaGetDriverEntryPointByVersion", [&](Runtime&, Caller&) {
    *function = find(symbol);
    *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

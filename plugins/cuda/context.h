#pragma once
/// One opened device, and how results of the runtime become codes and texts.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "infeed/plugin/abi.h"

namespace infeed::cuda {

/// Where a function of the table writes its text.
struct Text {
  char* data;
  std::uint64_t bytes;
};

/// Codes of abi.h. On failure writes "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)", and takes the error out of
/// the runtime's own memory of it, where others (a framework) would take it for theirs.
int check(cudaError_t result, const char* function, Text error) noexcept;

/// What the driver calls and the runtime does not: asked of the runtime, so that libcuda need not be linked.
struct Driver {
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) release = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
  decltype(&cuCtxRecordEvent) record_all = nullptr;
};

/// Holds the device's primary context, which the runtime and every framework in the process share.
class Context {
 public:
  static int open(std::int32_t index, void** device, Text error) noexcept;
  ~Context() { driver_.release(ordinal_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] CUcontext handle() const noexcept { return context_; }
  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }

 private:
  Context(int index, CUdevice ordinal, CUcontext context, const Driver& driver)
      : index_(index), ordinal_(ordinal), context_(context), driver_(driver) {}
  int index_;
  CUdevice ordinal_;
  CUcontext context_;
  Driver driver_;
};

/// Makes the device current for the calling thread. Unlike cudaSetDevice it leaves no trace: no context on the device that
/// was current before, which a thread that never touched CUDA would get by being set back to device 0.
class Current {
 public:
  explicit Current(void* device) noexcept : context_(*static_cast<const Context*>(device)) {
    pushed_ = context_.driver().push(context_.handle()) == CUDA_SUCCESS;
  }
  ~Current() {
    CUcontext popped = nullptr;
    if (pushed_) context_.driver().pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  [[nodiscard]] const Context& context() const noexcept { return context_; }
  /// False where somebody destroyed the context (cudaDeviceReset): calls would go to another device.
  [[nodiscard]] bool is_set() const noexcept { return pushed_; }
  /// What a function of the table returns then.
  int lost(Text error) const noexcept;

 private:
  const Context& context_;
  bool pushed_ = false;
};

}  // namespace infeed::cuda

// The kernels of a plugin for the stand-in: host twins, as host functions in CUDA's streams.
#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <utility>

#include "context.h"
#include "device/kernels/twins.h"
#include "infeed/base/error.h"
#include "kernels.h"

namespace infeed::cuda {
namespace {

struct StandInQueue {
  static const void* on_host(const void* there) noexcept { return there; }
  static void launch(const infeed_queue& queue, device::Twin twin) {
    const Current current(queue.device);
    auto owned = std::make_unique<device::Twin>(std::move(twin));
    const auto run = [](void* twin_of) { std::unique_ptr<device::Twin>(static_cast<device::Twin*>(twin_of))->run(); };
    const cudaError_t error = cudaLaunchHostFunc(static_cast<cudaStream_t>(queue.stream), run, owned.get());
    if (error != cudaSuccess) throw DeviceError(std::string("cudaLaunchHostFunc: ") + cudaGetErrorString(error));
    static_cast<void>(owned.release());  // run() owns it
  }
};

}  // namespace

const infeed_kernel_api* kernels() noexcept { return &device::Twins<StandInQueue>::kTable; }

}  // namespace infeed::cuda

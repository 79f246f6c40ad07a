// CUDA's kernels on the first GPU; skipped where there is none.
#include <cuda_runtime_api.h>

#include <string>

#include "cuda/kernels_list.h"
#include "infeed/base/error.h"

namespace infeed::device {
namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw DeviceError(std::string("the test's own call: ") + cudaGetErrorString(error));
}

}  // namespace

template <>
struct Place<Stream> {
  static bool is_there() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  }
  static void* upload(const void* host, std::size_t bytes) {
    void* there = nullptr;
    check(cudaMalloc(&there, bytes + 1));
    check(cudaMemcpy(there, host, bytes, cudaMemcpyHostToDevice));
    return there;
  }
  static void download(void* host, const void* there, std::size_t bytes) {
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(host, there, bytes, cudaMemcpyDeviceToHost));
  }
  static void release(void* there) { cudaFree(there); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, KernelsTest, Stream);

}  // namespace infeed::device

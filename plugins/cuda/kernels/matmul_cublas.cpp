// matmul() by cuBLAS.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "infeed/base/error.h"
#include "kernels.h"

namespace infeed::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(std::string("a product of matrices failed: ") + call + ": " + cublasGetStatusString(status));
}

struct Closer {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, Closer>;

// One a thread and device: a handle is of one thread at a time, and costs milliseconds to make.
cublasHandle_t handle_for(const Stream& stream) {
  static thread_local std::map<int, Handle> handles;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) throw DeviceError("a product of matrices failed: no device is current");
  Handle& handle = handles[device];
  if (!handle) {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "cublasCreate");
    handle.reset(made);
  }
  check(cublasSetStream(handle.get(), static_cast<cudaStream_t>(stream.handle)), "cublasSetStream");
  return handle.get();
}

}  // namespace

// cuBLAS stores columns: our c is its transpose, n x m = b' a'.
template <>
void matmul(const Stream& stream, const float* a, const float* b, float* c, Matmul shape) {
  if (shape.m == 0 || shape.n == 0) return;
  if (std::max({shape.m, shape.n, shape.k}) > std::numeric_limits<int>::max())
    throw DeviceError("a product of matrices failed: cuBLAS counts rows and columns in 31 bits");
  const auto m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const float one = 1, zero = 0;
  check(cublasSgemm(handle_for(stream), shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                    shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b,
                    std::max(1, shape.b_transposed ? k : n), a, std::max(1, shape.a_transposed ? m : k), &zero, c, n),
        "cublasSgemm");
}

}  // namespace infeed::cuda

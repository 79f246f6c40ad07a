// matmul() by cuBLAS.
#include <cublas_v2.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "device/kernels/kernels.h"
#include "library_handle.h"

namespace infeed::device {
namespace {

constexpr const char* kWhat = "a product of matrices failed";

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(kWhat) + ": " + call + ": " + cublasGetStatusString(status));
}

cublasHandle_t handle_for(const Stream& stream) {
  static thread_local LibraryHandles<cublasHandle_t, cublasDestroy> handles;
  const cublasHandle_t handle = handles.get(kWhat, [] {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "cublasCreate");
    return made;
  });
  check(cublasSetStream(handle, static_cast<cudaStream_t>(stream.handle)), "cublasSetStream");
  return handle;
}

}  // namespace

// cuBLAS stores columns: our c is its transpose, n x m = b' a'.
template <>
void matmul(const Stream& stream, const float* a, const float* b, float* c, infeed_matmul shape) {
  if (shape.m == 0 || shape.n == 0) return;
  check_sizes(kWhat, {shape.m, shape.n, shape.k});
  const auto m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const float one = 1, zero = 0;
  check(cublasSgemm(handle_for(stream), shape.b_transposed != 0 ? CUBLAS_OP_T : CUBLAS_OP_N,
                    shape.a_transposed != 0 ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b,
                    std::max(1, shape.b_transposed != 0 ? k : n), a, std::max(1, shape.a_transposed != 0 ? m : k),
                    &zero, c, n),
        "cublasSgemm");
}

}  // namespace infeed::device

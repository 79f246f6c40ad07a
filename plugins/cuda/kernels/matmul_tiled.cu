// matmul() where the toolkit has no cuBLAS.
#include "device.cuh"
#include "device/kernels/matmul.h"

namespace infeed::device {

template void matmul(const Stream&, const float*, const float*, float*, infeed_matmul);

}  // namespace infeed::device

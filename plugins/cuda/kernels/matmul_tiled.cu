// matmul() where the toolkit has no cuBLAS.
#include "device.cuh"

#include "matmul.h"

namespace infeed::cuda {

template void matmul(const Stream&, const float*, const float*, float*, Matmul);

}  // namespace infeed::cuda

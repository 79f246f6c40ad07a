// The host twins.
#include "host.h"

#include "convolution.h"
#include "loops.h"
#include "matmul.h"

namespace infeed::cuda {

INFEED_CUDA_KERNELS(Host);
INFEED_CUDA_CONVOLUTIONS(Host);
template void matmul(const Host&, const float*, const float*, float*, Matmul);

}  // namespace infeed::cuda

#include "device.cuh"

#include "convolution.h"
#include "loops.h"

namespace infeed::cuda {

INFEED_CUDA_KERNELS(Stream);
INFEED_CUDA_CONVOLUTIONS(Stream);

}  // namespace infeed::cuda

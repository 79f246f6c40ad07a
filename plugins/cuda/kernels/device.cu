#include "device.cuh"

#include "loops.h"

namespace infeed::cuda {

INFEED_CUDA_KERNELS(Stream);

}  // namespace infeed::cuda

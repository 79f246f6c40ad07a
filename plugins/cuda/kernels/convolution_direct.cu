// Convolutions where there is no cuDNN.
#include "device.cuh"

#include "convolution.h"

namespace infeed::cuda {

INFEED_CUDA_CONVOLUTIONS(Stream);

}  // namespace infeed::cuda

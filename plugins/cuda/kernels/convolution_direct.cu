// Convolutions where there is no cuDNN.
#include "device.cuh"
#include "device/kernels/convolution.h"

namespace infeed::device {

template void conv2d(const Stream&, const float*, const float*, const float*, float*, infeed_convolution);
template void conv2d_backward_input(const Stream&, const float*, const float*, float*, infeed_convolution);
template void conv2d_backward_weight(const Stream&, const float*, const float*, float*, infeed_convolution);

}  // namespace infeed::device

#pragma once
/// Every kernel but those that CUDA's libraries make (matmul.h, convolution.h). Included behind host.h or device.cuh.

#include "device/kernels/classes.h"
#include "device/kernels/loops.h"
#include "device/kernels/map.h"
#include "device/kernels/pooling.h"

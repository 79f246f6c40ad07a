#pragma once
/// infeed for LibTorch: batches as tensors, torch::data's datasets under infeed's workers, batches on devices.

#include "infeed/torch/data_loader.h"
#include "infeed/torch/prefetcher.h"
#include "infeed/torch/tensor.h"

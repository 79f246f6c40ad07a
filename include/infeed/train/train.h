#pragma once
/// The companion's everyday headers.

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/activation.h"
#include "infeed/train/nn/batch_norm.h"
#include "infeed/train/nn/conv.h"
#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/linear.h"
#include "infeed/train/nn/pooling.h"
#include "infeed/train/nn/sequential.h"
#include "infeed/train/optim/sgd.h"
#include "infeed/train/parallel.h"
#include "infeed/train/tensor/random.h"
#include "infeed/train/tensor/tensor.h"

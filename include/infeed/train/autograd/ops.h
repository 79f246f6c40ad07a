#pragma once
/// All operations on tensors; those of layers are in nn/functional.h.

#include "infeed/train/autograd/creation.h"
#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/indexing.h"
#include "infeed/train/autograd/join.h"
#include "infeed/train/autograd/linalg.h"
#include "infeed/train/autograd/reduction.h"

#pragma once
/// Gradients kept small: between backward() and optimizer.step(); under a GradScaler, behind unscale_().

#include <span>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::nn {

/// Scales the grads of `parameters` together, in place, so that their norm as one vector is at most `max_norm`; returns
/// the norm before. Parameters without a grad are left out. `norm_type`: p, infinity for the largest element.
/// Errors: RuntimeError for an infinite or NaN norm if `error_if_nonfinite`; else the grads become 0 or NaN.
INFEED_API Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type = 2.0,
                                  bool error_if_nonfinite = false);

/// Cuts every element of the grads to [-clip_value, clip_value].
INFEED_API void clip_grad_value_(std::span<const Tensor> parameters, double clip_value);

}  // namespace infeed::nn

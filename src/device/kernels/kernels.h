#pragma once
/// The companion's kernels for devices (infeed/plugin/kernel_abi.h says what each computes): each is written once, formulas
/// in arithmetic.h and elementwise.h, loops in loops.h and its neighbours, and made for two places, `Host` (the twins)
/// and `Stream` (CUDA: plugins/cuda/kernels).
///
/// Determinism: a twin's results are the GPU's up to the rounding of exp, log and fused multiply-adds. Threads: any.
/// Errors: a failed launch throws std::runtime_error; bad sizes are the caller's to refuse.

#include <cstdint>

#include "infeed/plugin/kernel_abi.h"

namespace infeed::device {

/// The caller's thread, memory of the host.
struct Host {};
/// A cudaStream_t (null: the default stream), memory of its device; that device is current.
struct Stream {
  void* handle = nullptr;
};

template <class Where>
void unary(const Where& where, infeed_operation op, infeed_loop loop);
template <class Where>
void binary(const Where& where, infeed_operation op, infeed_loop loop);
template <class Where>
void ternary(const Where& where, infeed_operation op, infeed_loop loop);
template <class Where>
void copy(const Where& where, infeed_loop loop);

template <class Where>
void normalize_to_nchw(const Where& where, const std::uint8_t* in, float* out, infeed_images shape,
                       infeed_normalization numbers);

template <class Where>
void reduce_rows(const Where& where, std::int32_t reduction, const float* x, float* y, infeed_rows shape);
template <class Where>
void sum_columns(const Where& where, const float* x, float* y, infeed_rows shape);
template <class Where>
void argmax_rows(const Where& where, const float* x, std::int64_t* y, infeed_rows shape);

template <class Where>
void softmax(const Where& where, const float* x, float* y, infeed_rows shape);
template <class Where>
void log_softmax(const Where& where, const float* x, float* y, infeed_rows shape);
template <class Where>
void softmax_backward(const Where& where, const float* g, const float* y, float* out, infeed_rows shape);
template <class Where>
void log_softmax_backward(const Where& where, const float* g, const float* y, float* out, infeed_rows shape);

template <class Where>
void pick_classes(const Where& where, const float* x, const std::int64_t* labels, float* losses, float* counts,
                  infeed_classes shape);
template <class Where>
void pick_classes_backward(const Where& where, const float* g, const std::int64_t* labels, float* out,
                           infeed_classes shape);
template <class Where>
void cross_entropy(const Where& where, const float* x, const std::int64_t* labels, float* losses, float* logsumexp,
                   float* counts, infeed_classes shape);
template <class Where>
void cross_entropy_backward(const Where& where, const float* scale, const float* x, const float* logsumexp,
                            const std::int64_t* labels, float* out, infeed_classes shape);

template <class Where>
void sgd_step(const Where& where, infeed_sgd numbers, float* param, const float* grad, float* momentum_buffer,
              std::int64_t numel);
template <class Where>
void adam_step(const Where& where, infeed_adam numbers, float* param, const float* grad, float* exp_avg,
               float* exp_avg_sq, float* max_exp_avg_sq, std::int64_t numel);

template <class Where>
void matmul(const Where& where, const float* a, const float* b, float* c, infeed_matmul shape);

template <class Where>
void conv2d(const Where& where, const float* x, const float* weight, const float* bias, float* y,
            infeed_convolution shape);
template <class Where>
void conv2d_backward_input(const Where& where, const float* g, const float* weight, float* out,
                           infeed_convolution shape);
template <class Where>
void conv2d_backward_weight(const Where& where, const float* g, const float* x, float* out, infeed_convolution shape);

template <class Where>
void max_pool2d(const Where& where, const float* x, float* y, std::int64_t* places, infeed_pooling shape);
template <class Where>
void max_pool2d_backward(const Where& where, const float* g, const std::int64_t* places, float* out,
                         infeed_pooling shape);
template <class Where>
void avg_pool2d(const Where& where, const float* x, float* y, infeed_pooling shape);
template <class Where>
void avg_pool2d_backward(const Where& where, const float* g, float* out, infeed_pooling shape);

}  // namespace infeed::device

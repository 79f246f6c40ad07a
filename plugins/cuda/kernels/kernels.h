#pragma once
/// The companion's kernels for CUDA, and their host twins: each is written once (formulas in arithmetic.h, loops in
/// loops.h) and made for two places, `Host` and `Stream`.
///
/// Memory belongs to the caller and lies where the place is; tensors are float32, contiguous, rows last. Work is queued
/// and not waited for (Host: done by the caller). Output may be an input where nothing else is said, but not overlap one.
/// Determinism: results do not depend on the device or its load, and are the twin's up to the rounding of exp, log and
/// fused multiply-adds. Threads: any. Errors: a failed launch throws DeviceError; bad sizes are the caller's to refuse.

#include <cstdint>

namespace infeed::cuda {

/// The caller's thread, memory of the host.
struct Host {};
/// A cudaStream_t (null: the default stream), memory of its device; that device is current.
struct Stream {
  void* handle = nullptr;
};

struct ImageBatch {
  std::int64_t n = 0, h = 0, w = 0, c = 0;  ///< c up to 4
};
/// Per channel: (x / 255 - mean) / std.
struct Normalization {
  float mean[4] = {0, 0, 0, 0};
  float std[4] = {1, 1, 1, 1};
};
/// uint8 [n, h, w, c] to float [n, c, h, w].
template <class Where>
void normalize_to_nchw(const Where& where, const std::uint8_t* in, float* out, ImageBatch shape, Normalization numbers);
/// float [n, h, w, c] to float [n, c, h, w], and back. Not in place.
template <class Where>
void nhwc_to_nchw(const Where& where, const float* in, float* out, ImageBatch shape);
template <class Where>
void nchw_to_nhwc(const Where& where, const float* in, float* out, ImageBatch shape);

enum class Unary : std::uint8_t { kNeg, kAbs, kExp, kLog, kSqrt, kRelu, kSigmoid, kTanh, kGelu };
template <class Where>
void unary(const Where& where, Unary op, const float* x, float* y, std::int64_t numel);
/// kReluBackward: a is the gradient, b relu's output. kSigmoidBackward, kTanhBackward: the same of those.
enum class Binary : std::uint8_t { kAdd, kSub, kMul, kDiv, kMax, kReluBackward, kSigmoidBackward, kTanhBackward };
template <class Where>
void binary(const Where& where, Binary op, const float* a, const float* b, float* y, std::int64_t numel);
/// y = scale * x + bias; a number of a tensor's size is not made.
template <class Where>
void affine(const Where& where, float scale, float bias, const float* x, float* y, std::int64_t numel);

struct Rows {
  std::int64_t rows = 0, columns = 0;
};
enum class Reduction : std::uint8_t { kSum, kMean, kMax, kMin };
/// [rows, columns] to [rows]. NaN is extreme. Columns of 0: kSum is 0; the others have no meaning.
template <class Where>
void reduce_rows(const Where& where, Reduction op, const float* x, float* y, Rows shape);
/// [rows, columns] to [columns]: a bias's gradient.
template <class Where>
void sum_columns(const Where& where, const float* x, float* y, Rows shape);

template <class Where>
void softmax(const Where& where, const float* x, float* y, Rows shape);
template <class Where>
void log_softmax(const Where& where, const float* x, float* y, Rows shape);
/// From y = softmax(x), or log_softmax(x), and the gradient g of y.
template <class Where>
void softmax_backward(const Where& where, const float* g, const float* y, float* out, Rows shape);
template <class Where>
void log_softmax_backward(const Where& where, const float* g, const float* y, float* out, Rows shape);

/// Formulas, meanings: infeed/train/optim/sgd.h and adam.h. What is not used may be null.
struct SgdNumbers {
  float lr = 1e-3F, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first = false;  ///< the buffer has no value yet: it takes the gradient
};
template <class Where>
void sgd_step(const Where& where, SgdNumbers numbers, float* param, const float* grad, float* momentum_buffer,
              std::int64_t numel);
struct AdamNumbers {
  float lr = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0;
  bool decoupled = false, maximize = false;
  float correction1 = 1, root_correction2 = 1;  ///< 1 - beta1^t, sqrt(1 - beta2^t), made in double by the caller
};
template <class Where>
void adam_step(const Where& where, AdamNumbers numbers, float* param, const float* grad, float* exp_avg,
               float* exp_avg_sq, float* max_exp_avg_sq, std::int64_t numel);

/// c [m, n] = a [m, k] b [k, n], or with either of a, b stored transposed ([k, m], [n, k]). c overlaps neither.
struct Matmul {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
};
template <class Where>
void matmul(const Where& where, const float* a, const float* b, float* c, Matmul shape);

/// x [n, c, h, w], weight [o, c / groups, kh, kw], y [n, o, out_h, out_w]. Sizes by rows, then columns.
struct Convolution {
  std::int64_t n = 0, c = 0, h = 0, w = 0, o = 0, kh = 1, kw = 1;
  std::int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  std::int64_t groups = 1;  ///< divides c and o
  std::int64_t out_h = 0, out_w = 0;
};
/// `bias` [o], or null.
template <class Where>
void conv2d(const Where& where, const float* x, const float* weight, const float* bias, float* y, Convolution shape);
/// From the gradient g of y.
template <class Where>
void conv2d_backward_input(const Where& where, const float* g, const float* weight, float* out, Convolution shape);
template <class Where>
void conv2d_backward_weight(const Where& where, const float* g, const float* x, float* out, Convolution shape);

}  // namespace infeed::cuda

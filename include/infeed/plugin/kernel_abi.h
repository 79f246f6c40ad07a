#pragma once
/* What a device computes for infeed's companion (abi.h has the rules for tables and errors). Optional: a device without
 * it holds memory only.
 *
 * A function queues one kernel and returns. Memory belongs to the caller, lies on the device and stays until the stream
 * has passed the kernel. Tensors named by a pointer alone are contiguous, rows last. An output may be an input where
 * nothing else is said, but not overlap one. Results depend neither on the device nor on its load. Threads: any. */

#include <stdint.h>

#include "infeed/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a kernel goes, and its text where it cannot: the plugin's device, a stream of it. */
typedef struct infeed_queue {
  void* device;
  void* stream;
  char* error;
  uint64_t error_bytes;
} infeed_queue;

/* One tensor of a loop. dtype: the numbers of infeed/base/dtype.h; no float16, no bfloat16. */
typedef struct infeed_operand {
  void* data;    /* null: the same number everywhere */
  double number; /* that one */
  int32_t dtype;
  int32_t reserved;
  int64_t stride[INFEED_MAX_DIMS]; /* in bytes */
} infeed_operand;

/* Elements walked together; innermost dimension first. The output is operand 0. */
typedef struct infeed_loop {
  int64_t numel;
  int32_t ndim;
  int32_t wide; /* computed as double instead of float: integers are exact below 2^53 */
  int64_t size[INFEED_MAX_DIMS];
  infeed_operand operand[4];
  double a, b; /* the operation's numbers */
} infeed_loop;

/* What is computed for one element: the numbers of infeed/device/operations.h. */
typedef int32_t infeed_operation;

typedef struct infeed_images {
  int64_t n, h, w, c; /* c up to 4 */
} infeed_images;
/* Per channel: (x / 255 - mean) / std. */
typedef struct infeed_normalization {
  float mean[4], std[4];
} infeed_normalization;

typedef struct infeed_rows {
  int64_t rows, columns;
} infeed_rows;

enum { INFEED_REDUCE_SUM = 0, INFEED_REDUCE_MEAN = 1, INFEED_REDUCE_MAX = 2, INFEED_REDUCE_MIN = 3 };

/* What a row counts for whose label is outside [0, columns): NaN, unless it is ignore_index. */
typedef struct infeed_classes {
  int64_t rows, columns;
  int64_t ignore_index; /* rows with this label count nothing */
  double label_smoothing;
} infeed_classes;

/* Meanings: infeed/train/optim/sgd.h and adam.h. Flags are 0 or 1. */
typedef struct infeed_sgd {
  float lr, momentum, dampening, weight_decay;
  int32_t nesterov, maximize;
  int32_t first; /* the buffer has no value yet: it takes the gradient */
} infeed_sgd;
typedef struct infeed_adam {
  float lr, beta1, beta2, eps, weight_decay;
  int32_t decoupled, maximize;
  float correction1, root_correction2; /* 1 - beta1^t, sqrt(1 - beta2^t), made in double by the caller */
} infeed_adam;

/* c [m, n] = a [m, k] b [k, n], or with either of a, b stored transposed ([k, m], [n, k]). */
typedef struct infeed_matmul {
  int64_t m, n, k;
  int32_t a_transposed, b_transposed;
} infeed_matmul;

/* x [n, c, h, w], weight [o, c / groups, kh, kw], y [n, o, out_h, out_w]. Pairs: rows, then columns. */
typedef struct infeed_convolution {
  int64_t n, c, h, w, o, kh, kw;
  int64_t stride[2], padding[2], dilation[2];
  int64_t groups; /* divides c and o */
  int64_t out_h, out_w;
} infeed_convolution;

/* Windows over `planes` images x [planes, h, w]; y [planes, out_h, out_w]. Padding counts nothing. */
typedef struct infeed_pooling {
  int64_t planes, h, w;
  int64_t kernel[2], stride[2], padding[2]; /* padding: at most half of kernel */
  int64_t out_h, out_w;
} infeed_pooling;

typedef struct infeed_kernel_api {
  uint64_t struct_size;

  /* Elements; broadcasting by strides of 0. */
  int (*unary)(const infeed_queue*, infeed_operation, infeed_loop);
  int (*binary)(const infeed_queue*, infeed_operation, infeed_loop);
  int (*ternary)(const infeed_queue*, infeed_operation, infeed_loop);
  int (*copy)(const infeed_queue*, infeed_loop); /* operand 0 = operand 1, converted */

  /* uint8 [n, h, w, c] to float [n, c, h, w]. */
  int (*normalize_to_nchw)(const infeed_queue*, const uint8_t* in, float* out, infeed_images, infeed_normalization);

  /* [rows, columns] to [rows]. NaN is extreme. Columns of 0: the sum is 0, the others have no meaning. */
  int (*reduce_rows)(const infeed_queue*, int32_t reduction, const float* x, float* y, infeed_rows);
  int (*sum_columns)(const infeed_queue*, const float* x, float* y, infeed_rows);   /* [rows, columns] to [columns] */
  int (*argmax_rows)(const infeed_queue*, const float* x, int64_t* y, infeed_rows); /* the first of the largest */

  int (*softmax)(const infeed_queue*, const float* x, float* y, infeed_rows);
  int (*log_softmax)(const infeed_queue*, const float* x, float* y, infeed_rows);
  /* From y = softmax(x), or log_softmax(x), and the gradient g of y. */
  int (*softmax_backward)(const infeed_queue*, const float* g, const float* y, float* out, infeed_rows);
  int (*log_softmax_backward)(const infeed_queue*, const float* g, const float* y, float* out, infeed_rows);

  /* Per row -x[label], 0 where ignored, and 1 or 0 for whether it counts; and from a gradient of each loss that of x. */
  int (*pick_classes)(const infeed_queue*, const float* x, const int64_t* labels, float* losses, float* counts,
                      infeed_classes);
  int (*pick_classes_backward)(const infeed_queue*, const float* g, const int64_t* labels, float* out, infeed_classes);
  /* Per row the cross entropy of x, its logsumexp, and whether it counts. Backward: `scale` is one number on the device. */
  int (*cross_entropy)(const infeed_queue*, const float* x, const int64_t* labels, float* losses, float* logsumexp,
                       float* counts, infeed_classes);
  int (*cross_entropy_backward)(const infeed_queue*, const float* scale, const float* x, const float* logsumexp,
                                const int64_t* labels, float* out, infeed_classes);

  /* What is not used may be null. */
  int (*sgd_step)(const infeed_queue*, infeed_sgd, float* param, const float* grad, float* momentum_buffer,
                  int64_t numel);
  int (*adam_step)(const infeed_queue*, infeed_adam, float* param, const float* grad, float* exp_avg, float* exp_avg_sq,
                   float* max_exp_avg_sq, int64_t numel);

  int (*matmul)(const infeed_queue*, const float* a, const float* b, float* c, infeed_matmul);

  int (*conv2d)(const infeed_queue*, const float* x, const float* weight, const float* bias, float* y,
                infeed_convolution); /* bias [o], or null */
  int (*conv2d_backward_input)(const infeed_queue*, const float* g, const float* weight, float* out,
                               infeed_convolution);
  int (*conv2d_backward_weight)(const infeed_queue*, const float* g, const float* x, float* out, infeed_convolution);

  /* `where`: of each window the place of its largest element within the plane; the first of equal ones, NaN is largest. */
  int (*max_pool2d)(const infeed_queue*, const float* x, float* y, int64_t* where, infeed_pooling);
  int (*max_pool2d_backward)(const infeed_queue*, const float* g, const int64_t* where, float* out, infeed_pooling);
  int (*avg_pool2d)(const infeed_queue*, const float* x, float* y, infeed_pooling);
  int (*avg_pool2d_backward)(const infeed_queue*, const float* g, float* out, infeed_pooling);
} infeed_kernel_api;

#ifdef __cplusplus
}
#endif

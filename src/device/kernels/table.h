#pragma once
/// The table of kernels of one place: the only list of all of them.

#include "device/kernels/kernels.h"

namespace infeed::device {

/// Entry<Where, &kernel<Where>>::call is the table's function for that kernel: it queues kernel(Where, arguments...).
template <class Where, template <class, auto> class Entry>
[[nodiscard]] constexpr infeed_kernel_api table_of() {
  return {.struct_size = sizeof(infeed_kernel_api),
          .unary = Entry<Where, &unary<Where>>::call,
          .binary = Entry<Where, &binary<Where>>::call,
          .ternary = Entry<Where, &ternary<Where>>::call,
          .copy = Entry<Where, &copy<Where>>::call,
          .normalize_to_nchw = Entry<Where, &normalize_to_nchw<Where>>::call,
          .reduce_rows = Entry<Where, &reduce_rows<Where>>::call,
          .sum_columns = Entry<Where, &sum_columns<Where>>::call,
          .argmax_rows = Entry<Where, &argmax_rows<Where>>::call,
          .softmax = Entry<Where, &softmax<Where>>::call,
          .log_softmax = Entry<Where, &log_softmax<Where>>::call,
          .softmax_backward = Entry<Where, &softmax_backward<Where>>::call,
          .log_softmax_backward = Entry<Where, &log_softmax_backward<Where>>::call,
          .pick_classes = Entry<Where, &pick_classes<Where>>::call,
          .pick_classes_backward = Entry<Where, &pick_classes_backward<Where>>::call,
          .cross_entropy = Entry<Where, &cross_entropy<Where>>::call,
          .cross_entropy_backward = Entry<Where, &cross_entropy_backward<Where>>::call,
          .sgd_step = Entry<Where, &sgd_step<Where>>::call,
          .adam_step = Entry<Where, &adam_step<Where>>::call,
          .matmul = Entry<Where, &matmul<Where>>::call,
          .conv2d = Entry<Where, &conv2d<Where>>::call,
          .conv2d_backward_input = Entry<Where, &conv2d_backward_input<Where>>::call,
          .conv2d_backward_weight = Entry<Where, &conv2d_backward_weight<Where>>::call,
          .max_pool2d = Entry<Where, &max_pool2d<Where>>::call,
          .max_pool2d_backward = Entry<Where, &max_pool2d_backward<Where>>::call,
          .avg_pool2d = Entry<Where, &avg_pool2d<Where>>::call,
          .avg_pool2d_backward = Entry<Where, &avg_pool2d_backward<Where>>::call};
}

}  // namespace infeed::device

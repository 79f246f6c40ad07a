#include "device.cuh"
#include "device/kernels/all.h"

namespace infeed::device {

template void unary(const Stream&, infeed_operation, infeed_loop);
template void binary(const Stream&, infeed_operation, infeed_loop);
template void ternary(const Stream&, infeed_operation, infeed_loop);
template void copy(const Stream&, infeed_loop);
template void normalize_to_nchw(const Stream&, const std::uint8_t*, float*, infeed_images, infeed_normalization);
template void reduce_rows(const Stream&, std::int32_t, const float*, float*, infeed_rows);
template void sum_columns(const Stream&, const float*, float*, infeed_rows);
template void argmax_rows(const Stream&, const float*, std::int64_t*, infeed_rows);
template void softmax(const Stream&, const float*, float*, infeed_rows);
template void log_softmax(const Stream&, const float*, float*, infeed_rows);
template void softmax_backward(const Stream&, const float*, const float*, float*, infeed_rows);
template void log_softmax_backward(const Stream&, const float*, const float*, float*, infeed_rows);
template void pick_classes(const Stream&, const float*, const std::int64_t*, float*, float*, infeed_classes);
template void pick_classes_backward(const Stream&, const float*, const std::int64_t*, float*, infeed_classes);
template void cross_entropy(const Stream&, const float*, const std::int64_t*, float*, float*, float*, infeed_classes);
template void cross_entropy_backward(const Stream&, const float*, const float*, const float*, const std::int64_t*,
                                     float*, infeed_classes);
template void sgd_step(const Stream&, infeed_sgd, float*, const float*, float*, std::int64_t);
template void adam_step(const Stream&, infeed_adam, float*, const float*, float*, float*, float*, std::int64_t);
template void max_pool2d(const Stream&, const float*, float*, std::int64_t*, infeed_pooling);
template void max_pool2d_backward(const Stream&, const float*, const std::int64_t*, float*, infeed_pooling);
template void avg_pool2d(const Stream&, const float*, float*, infeed_pooling);
template void avg_pool2d_backward(const Stream&, const float*, float*, infeed_pooling);

}  // namespace infeed::device

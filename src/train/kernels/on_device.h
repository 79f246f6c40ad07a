#pragma once
/// What the kernels of this folder hand on where a tensor lies on a device: each checks, and queues the device's kernel of
/// the same name (infeed/plugin/kernel_abi.h). Tensors are float32 and contiguous where nothing else is said. Errors:
/// NotImplementedError for a dtype or operation that the device lacks, naming both; RuntimeError for two devices.

#include <cstdint>
#include <string_view>

#include "infeed/device/operations.h"
#include "infeed/plugin/kernel_abi.h"
#include "infeed/train/tensor/tensor.h"
#include "train/kernels/conv.h"
#include "train/kernels/cross_entropy.h"
#include "train/kernels/pool.h"
#include "train/tensor/device_memory.h"
#include "train/tensor/impl.h"

namespace infeed::kernels::on_device {

[[noreturn]] void refuse(std::string_view op, DeviceId device, std::string_view why);

/// One kernel, on its way to one device.
class Launch {
 public:
  /// For the device of `like`.
  Launch(const char* op, const Tensor& like);

  /// The address of a tensor's first element; checks that it is contiguous, of dtype T and on this device. Null for an
  /// undefined one.
  template <class T = float>
  [[nodiscard]] T* at(const Tensor& x) const {
    if (!x.defined()) return nullptr;
    check(x, dtype_of<T>);
    return reinterpret_cast<T*>(x.device_ptr());
  }

  /// Queues `kernel`. What the device says of a failure is thrown.
  template <class... Params, class... Args>
  void operator()(int (*infeed_kernel_api::*kernel)(const infeed_queue*, Params...), Args... args) const {
    char error[kErrorBytes] = "";
    const infeed_queue queue = queue_for(error);
    if (const int code = (api_->*kernel)(&queue, args...); code != INFEED_OK) fail(code, error);
  }

 private:
  static constexpr std::size_t kErrorBytes = 512;
  void check(const Tensor& x, DType dtype) const;
  [[nodiscard]] infeed_queue queue_for(char (&error)[kErrorBytes]) const;
  [[noreturn]] void fail(int code, const char* text) const;

  const char* op_;
  const DeviceMemory& memory_;
  const infeed_kernel_api* api_;
  void* device_;
};

// Elementwise, as elementwise.h; operands without dimensions may lie on the host.
void unary(UnaryOp op, const Tensor& out, const Tensor& x, DType compute, double a, double b);
void binary(BinaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, DType compute, double a);
void ternary(TernaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z, DType compute,
             double a);

/// As copy.h, where `out` or `in` or both lie on a device. Between host and device it waits for the bytes.
void copy(const Tensor& out, const Tensor& in);

/// x [rows, columns] to out, which has as many elements as there are rows.
void reduce_rows(std::int32_t reduction, const Tensor& out, const Tensor& x, infeed_rows shape);
void sum_columns(const Tensor& out, const Tensor& x, infeed_rows shape);
void argmax_rows(const Tensor& out, const Tensor& x, infeed_rows shape);

/// Softmax and its kin along the last dimension, by a member of the table.
using RowKernel = int (*infeed_kernel_api::*)(const infeed_queue*, const float*, float*, infeed_rows);
using RowBackward = int (*infeed_kernel_api::*)(const infeed_queue*, const float*, const float*, float*, infeed_rows);
[[nodiscard]] Tensor along_rows(const char* op, RowKernel kernel, const Tensor& x);
[[nodiscard]] Tensor along_rows(const char* op, RowBackward kernel, const Tensor& g, const Tensor& y);

[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias, bool relu);

/// normalise: [2, rows], logsumexp and whether a row counts. A label out of range makes NaN: the host cannot look.
[[nodiscard]] CrossEntropyResult cross_entropy(const Tensor& x, const Tensor& labels, const CrossEntropySpec& spec);
[[nodiscard]] Tensor cross_entropy_backward(const Tensor& g, const Tensor& x, const Tensor& normalise,
                                            const Tensor& labels, const CrossEntropySpec& spec);

/// x [rows, classes], labels int64 [rows]. Per row -x[label], 0 where it is ignored; and 1, or 0 there.
struct PickedClasses {
  Tensor losses, counts;
};
[[nodiscard]] PickedClasses pick_classes(const Tensor& x, const Tensor& labels, std::int64_t ignore_index);
[[nodiscard]] Tensor pick_classes_backward(const Tensor& g, const Tensor& labels, const Shape& x_shape,
                                           std::int64_t ignore_index);

// As conv.h and pool.h, but channels first; `where` is int64.
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry,
                            bool relu);
[[nodiscard]] Tensor conv2d_backward_input(const Tensor& grad, const Tensor& weight, const Shape& x_shape,
                                           const ConvGeometry& geometry);
[[nodiscard]] ConvWeightGrads conv2d_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_shape,
                                                     bool with_bias, const ConvGeometry& geometry);
[[nodiscard]] MaxPoolResult max_pool2d(const Tensor& x, const PoolGeometry& geometry);
[[nodiscard]] Tensor max_pool2d_backward(const Tensor& grad, const Tensor& where, const Shape& x_shape,
                                         const PoolGeometry& geometry);
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, const PoolGeometry& geometry);
[[nodiscard]] Tensor avg_pool2d_backward(const Tensor& grad, const Shape& x_shape, const PoolGeometry& geometry);

}  // namespace infeed::kernels::on_device

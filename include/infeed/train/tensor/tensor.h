#pragma once
/// Tensor: the value that layers, losses and optimizers pass around. Arithmetic: autograd/ops.h; layers: nn/.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include "infeed/base/array_view.h"
#include "infeed/base/dtype.h"
#include "infeed/base/export.h"
#include "infeed/base/shape.h"

namespace infeed {

class Generator;
class Node;
class Storage;
struct TensorImpl;

/// How a dense tensor lies in memory. Sizes are always logical (N, C, H, W); strides say which it is.
enum class MemoryFormat : std::uint8_t {
  kContiguous,    ///< C order: NCHW
  kChannelsLast,  ///< 4 dimensions, channels innermost: NHWC; what convolutions make
};

struct BackwardOptions {
  bool retain_graph = false;  ///< Keep what the graph saved, to run backward() again. Costs that memory.
};

/// A handle: copies refer to the same tensor, as in PyTorch. Made by a factory or an operation; a default one is
/// undefined and refuses use. Views share storage and version with what they view.
///
/// Differentiation: an operation on a tensor that requires_grad records a Node unless grad mode is off
/// (autograd/grad_mode.h). Arithmetic is float32's first: other types convert with to().
/// Threads: as a standard container; distinct tensors, also of one storage, may be read from any thread.
/// Errors: ConfigError names the operation with both shapes or dtypes; IndexError a dimension or index out of range.
class INFEED_API Tensor {
 public:
  Tensor() = default;

  // Create.
  [[nodiscard]] static Tensor empty(const Shape& shape, DType dtype = DType::kFloat32,
                                    MemoryFormat format = MemoryFormat::kContiguous);
  /// Undefined contents; shape, dtype and, where dense, strides of `other`.
  [[nodiscard]] static Tensor empty_like(const Tensor& other);
  [[nodiscard]] static Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32);
  [[nodiscard]] static Tensor ones(const Shape& shape, DType dtype = DType::kFloat32);
  [[nodiscard]] static Tensor full(const Shape& shape, double value, DType dtype = DType::kFloat32);
  /// 0, 1, ..., n - 1.
  [[nodiscard]] static Tensor arange(std::int64_t n, DType dtype = DType::kInt64);
  /// float32, uniform in [low, high) or standard normal, from default_generator() or the given one.
  [[nodiscard]] static Tensor uniform(const Shape& shape, float low, float high);
  [[nodiscard]] static Tensor uniform(const Shape& shape, float low, float high, Generator& generator);
  [[nodiscard]] static Tensor randn(const Shape& shape);
  [[nodiscard]] static Tensor randn(const Shape& shape, Generator& generator);
  /// Copies `values`, in C order; their number must be the shape's.
  template <typename T>
  [[nodiscard]] static Tensor from_values(std::span<const T> values, const Shape& shape) {
    return copy_of(values.data(), static_cast<std::int64_t>(values.size()), dtype_of<T>, shape);
  }
  template <typename T>
  [[nodiscard]] static Tensor from_values(std::initializer_list<T> values, const Shape& shape) {
    return from_values(std::span<const T>(values.begin(), values.size()), shape);
  }
  template <typename T>
  [[nodiscard]] static Tensor from_values(std::initializer_list<T> values) {
    return from_values(values, {static_cast<std::int64_t>(values.size())});
  }
  /// The array itself, without a copy: `owner` (a Batch's) keeps its memory. CPU arrays only.
  [[nodiscard]] static Tensor from_array(const ArrayView& array, std::shared_ptr<void> owner);

  // Observe.
  [[nodiscard]] bool defined() const noexcept { return impl_ != nullptr; }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] const Strides& strides() const;  ///< in elements
  [[nodiscard]] int ndim() const { return shape().ndim(); }
  [[nodiscard]] std::int64_t size(int dim) const;  ///< negative counts from the end
  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] std::size_t nbytes() const;  ///< of the elements
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] DeviceId device() const;
  [[nodiscard]] bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  [[nodiscard]] std::byte* data_ptr() const;  ///< element [0, 0, ...]
  /// First element as T; ConfigError if T is not the dtype. Writing through it is not seen by the version.
  template <typename T>
  [[nodiscard]] T* data() const {
    return array().as<T>();
  }
  [[nodiscard]] ArrayView array() const;  ///< borrowed
  [[nodiscard]] const std::shared_ptr<Storage>& storage() const;
  [[nodiscard]] std::uint32_t version() const;
  /// The only element, converted. ConfigError unless there is exactly one.
  template <typename T = double>
  [[nodiscard]] T item() const {
    return static_cast<T>(item_value());
  }
  [[nodiscard]] std::string str() const;  ///< values (long ones cut), shape and dtype

  // Views, all differentiable. Dimensions may be negative.
  [[nodiscard]] Tensor view(const Shape& shape) const;     ///< one size may be -1; ConfigError where a copy is needed
  [[nodiscard]] Tensor reshape(const Shape& shape) const;  ///< a view where possible, else a copy
  [[nodiscard]] Tensor flatten(int start_dim = 0, int end_dim = -1) const;
  [[nodiscard]] Tensor permute(const Dims& dims) const;
  [[nodiscard]] Tensor transpose(int dim0, int dim1) const;
  [[nodiscard]] Tensor t() const { return transpose(0, 1); }
  [[nodiscard]] Tensor select(int dim, std::int64_t index) const;
  [[nodiscard]] Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  [[nodiscard]] Tensor unsqueeze(int dim) const;
  [[nodiscard]] Tensor squeeze(int dim) const;
  [[nodiscard]] Tensor expand(const Shape& shape) const;  ///< repeats dimensions of size 1 without a copy

  // Copies, differentiable.
  [[nodiscard]] Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;  ///< itself if already so
  [[nodiscard]] Tensor clone() const;
  [[nodiscard]] Tensor to(DType dtype) const;  ///< itself if already so; floats to integers truncate

  // In place. ConfigError where grad mode is on and this or an argument requires_grad: use NoGradGuard.
  Tensor& zero_();
  Tensor& fill_(double value);
  Tensor& copy_(const Tensor& source);  ///< broadcasts and converts
  Tensor& add_(const Tensor& other, double alpha = 1.0);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(double factor);

  // Differentiate.
  [[nodiscard]] bool requires_grad() const;
  Tensor& set_requires_grad(bool value = true);  ///< leaves of a floating-point dtype only
  [[nodiscard]] bool is_leaf() const;
  [[nodiscard]] const Tensor& grad() const;  ///< undefined until backward() reaches this leaf
  void set_grad(Tensor grad);
  [[nodiscard]] const std::shared_ptr<Node>& grad_fn() const;
  [[nodiscard]] Tensor detach() const;  ///< the same storage, outside the graph
  /// Adds d(this)/d(leaf) to the grad of every leaf that requires it. This must have one element.
  void backward(const BackwardOptions& options = {}) const;
  /// The same for any shape, from the gradient of this tensor.
  void backward(const Tensor& gradient, const BackwardOptions& options = {}) const;

  /// For the library's own folders.
  explicit Tensor(std::shared_ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  [[nodiscard]] TensorImpl& impl() const;
  [[nodiscard]] bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  [[nodiscard]] bool is_unique() const noexcept;  ///< nobody else holds this tensor or its storage

 private:
  static Tensor copy_of(const void* values, std::int64_t count, DType dtype, const Shape& shape);
  [[nodiscard]] double item_value() const;

  std::shared_ptr<TensorImpl> impl_;
};

INFEED_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace infeed

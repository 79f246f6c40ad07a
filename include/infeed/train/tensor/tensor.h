#pragma once
/// Tensor: the value that layers, losses and optimizers pass around. Arithmetic: autograd/ops.h; layers: nn/.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "infeed/base/array_view.h"
#include "infeed/base/dtype.h"
#include "infeed/base/export.h"
#include "infeed/base/shape.h"
#include "infeed/train/tensor/error.h"
#include "infeed/train/tensor/options.h"
#include "infeed/train/tensor/scalar.h"

namespace infeed {

class Generator;
class Node;
class Storage;
class Tensor;
struct TensorImpl;

/// How a dense tensor lies in memory. Sizes are always logical (N, C, H, W); strides say which it is.
enum class MemoryFormat : std::uint8_t {
  kContiguous,    ///< C order: NCHW
  kChannelsLast,  ///< 4 dimensions, channels innermost: NHWC; what convolutions make
  kPreserve,      ///< as the source lies, where that is dense
};

struct BackwardOptions {
  bool retain_graph = false;  ///< Keep what the graph saved, to run backward() again. Costs that memory.
  bool create_graph = false;  ///< Record backward() itself, for gradients of gradients. Implies retain_graph.
};

/// x[start:stop:step]; absent ends are open.
struct Slice {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::int64_t step = 1;
};
struct NewAxis {};   ///< x[None]
struct Ellipsis {};  ///< x[...]
/// One place of an index: a number, a slice, None, `...`, a bool, or a tensor of indices or a mask.
using Index = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, bool, Tensor>;

/// Called with the gradient of a tensor; returns another one in its place, or an undefined tensor to keep it.
using TensorHook = std::function<Tensor(const Tensor&)>;
struct HookList;
/// What register_hook returns. Copies refer to the same hook.
class INFEED_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<HookList> list, std::uint64_t id) : list_(std::move(list)), id_(id) {}
  void remove();
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  std::weak_ptr<HookList> list_;
  std::uint64_t id_ = 0;
};

/// A handle: copies refer to the same tensor, as in PyTorch. Made by a factory, an operation, or from a number; a
/// default one is undefined and refuses use. Views share storage and version with what they view.
///
/// Differentiation: an operation on a tensor that requires_grad records a Node unless grad mode is off
/// (autograd/grad_mode.h).
/// Threads: as a standard container; distinct tensors, also of one storage, may be read from any thread.
/// Errors: RuntimeError with PyTorch's texts; IndexError for a dimension or index out of range.
class INFEED_API Tensor {
 public:
  Tensor() = default;
  /// A number as an operand: 0-dimensional, and too weak to change a tensor's dtype within its category.
  template <class N>
  requires std::is_arithmetic_v<N> Tensor(N value) : Tensor(wrapped(Scalar(value))) {}  // NOLINT: implicit on purpose
  [[nodiscard]] static Tensor wrapped(const Scalar& value);

  // Create. More factories: autograd/creation.h.
  [[nodiscard]] static Tensor empty(const Shape& shape, const TensorOptions& options = {},
                                    MemoryFormat format = MemoryFormat::kContiguous);
  [[nodiscard]] static Tensor empty_strided(const Shape& shape, const Strides& strides,
                                            const TensorOptions& options = {});
  /// Undefined contents; shape, dtype, device and, where dense, strides of `other`.
  [[nodiscard]] static Tensor empty_like(const Tensor& other, std::optional<DType> dtype = {});
  [[nodiscard]] static Tensor zeros(const Shape& shape, const TensorOptions& options = {});
  [[nodiscard]] static Tensor ones(const Shape& shape, const TensorOptions& options = {});
  [[nodiscard]] static Tensor full(const Shape& shape, const Scalar& value, const TensorOptions& options = {});
  /// 0, 1, ..., n - 1.
  [[nodiscard]] static Tensor arange(std::int64_t n, DType dtype = DType::kInt64);
  /// Uniform in [low, high) or standard normal, from default_generator() or the given one: PyTorch's numbers for the
  /// same seed.
  [[nodiscard]] static Tensor uniform(const Shape& shape, double low, double high);
  [[nodiscard]] static Tensor uniform(const Shape& shape, double low, double high, Generator& generator);
  [[nodiscard]] static Tensor randn(const Shape& shape, const TensorOptions& options = {});
  [[nodiscard]] static Tensor randn(const Shape& shape, Generator& generator, const TensorOptions& options = {});
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
  /// The array itself, without a copy: `owner` (a Batch's) keeps its memory. On a device its values are those that
  /// device_stream() finds when its work gets there.
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
  [[nodiscard]] bool is_meta() const;
  [[nodiscard]] TensorOptions options() const { return {dtype(), device()}; }  ///< for a new tensor of its kind
  [[nodiscard]] bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  [[nodiscard]] bool is_wrapped_number() const;
  [[nodiscard]] bool is_inference() const;
  /// Element [0, 0, ...]; null on meta. On a device it throws NotImplementedError naming `asker`.
  [[nodiscard]] std::byte* data_ptr(const char* asker = __builtin_FUNCTION()) const;
  [[nodiscard]] std::byte* device_ptr() const;        ///< the same, for the device: not to be read here
  [[nodiscard]] std::int64_t storage_offset() const;  ///< in elements
  /// First element as T; ConfigError if T is not the dtype. Writing through it is not seen by the version.
  template <typename T>
  [[nodiscard]] T* data(const char* asker = __builtin_FUNCTION()) const {
    return array(asker).as<T>();
  }
  [[nodiscard]] ArrayView array(const char* asker = __builtin_FUNCTION()) const;  ///< borrowed
  [[nodiscard]] const std::shared_ptr<Storage>& storage() const;
  [[nodiscard]] std::uint32_t version() const;  ///< RuntimeError for an inference tensor
  /// The only element, converted. RuntimeError unless there is exactly one.
  template <typename T = double>
  [[nodiscard]] T item() const {
    const Scalar value = item_scalar();
    return value.is_float() ? static_cast<T>(value.to_double()) : static_cast<T>(value.to_int());
  }
  [[nodiscard]] Scalar item_scalar() const;
  [[nodiscard]] std::string str() const;  ///< as PyTorch prints it

  // Views, all differentiable. Dimensions may be negative.
  [[nodiscard]] Tensor view(const Shape& shape) const;     ///< one size may be -1; RuntimeError where a copy is needed
  [[nodiscard]] Tensor reshape(const Shape& shape) const;  ///< a view where possible, else a copy
  [[nodiscard]] Tensor flatten(int start_dim = 0, int end_dim = -1) const;
  [[nodiscard]] Tensor unflatten(int dim, const Shape& sizes) const;
  [[nodiscard]] Tensor permute(const Dims& dims) const;
  [[nodiscard]] Tensor transpose(int dim0, int dim1) const;
  [[nodiscard]] Tensor t() const;  ///< of at most two dimensions
  [[nodiscard]] Tensor select(int dim, std::int64_t index) const;
  [[nodiscard]] Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  [[nodiscard]] Tensor slice(int dim, const Slice& slice) const;
  [[nodiscard]] Tensor unsqueeze(int dim) const;
  [[nodiscard]] Tensor squeeze() const;
  [[nodiscard]] Tensor squeeze(int dim) const;
  [[nodiscard]] Tensor expand(const Shape& shape) const;  ///< repeats dimensions of size 1 without a copy; -1 keeps one
  [[nodiscard]] Tensor unfold(int dim, std::int64_t size,
                              std::int64_t step) const;  ///< windows, in a new last dimension
  [[nodiscard]] Tensor as_strided(const Shape& shape, const Strides& strides,
                                  std::optional<std::int64_t> storage_offset = {}) const;
  [[nodiscard]] Tensor diagonal(std::int64_t offset = 0, int dim0 = 0, int dim1 = 1) const;

  // x[...]: a view where numbers, slices, None and `...` suffice, else a copy.
  [[nodiscard]] Tensor index(const std::vector<Index>& indices) const;
  /// x[...] = value, which broadcasts. Recorded.
  void index_put(const std::vector<Index>& indices, const Tensor& value);

  // Copies, differentiable.
  [[nodiscard]] Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;  ///< itself if already so
  [[nodiscard]] Tensor clone(MemoryFormat format = MemoryFormat::kPreserve) const;
  /// Itself if already so, unless `copy`; floats to integers truncate.
  [[nodiscard]] Tensor to(DType dtype, bool copy = false) const;
  [[nodiscard]] Tensor to(const TensorOptions& options, bool copy = false) const;
  [[nodiscard]] Tensor cpu() const { return to(DeviceId{}); }

  // In place, recorded as PyTorch does (more: autograd/in_place.h). RuntimeError on a leaf that requires grad.
  Tensor& zero_();
  Tensor& fill_(const Tensor& value);
  Tensor& copy_(const Tensor& source);  ///< broadcasts and converts
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& sub_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& mul_(const Tensor& other);
  Tensor& div_(const Tensor& other);

  // Differentiate.
  [[nodiscard]] bool requires_grad() const;
  Tensor& set_requires_grad(bool value = true);  ///< leaves of a floating-point dtype only
  [[nodiscard]] bool is_leaf() const;
  [[nodiscard]] const Tensor& grad() const;  ///< undefined until backward() reaches this leaf
  void set_grad(Tensor grad);
  [[nodiscard]] const std::shared_ptr<Node>& grad_fn() const;
  [[nodiscard]] int output_nr() const;  ///< which output of grad_fn() it is
  void retain_grad();                   ///< fill grad() of this result, too
  [[nodiscard]] bool retains_grad() const;
  HookHandle register_hook(TensorHook hook);
  /// Called with this leaf after its grad has grown.
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook);
  [[nodiscard]] bool is_view() const;
  [[nodiscard]] Tensor base() const;    ///< what a view looks at; undefined for others
  [[nodiscard]] Tensor detach() const;  ///< the same storage and version, outside the graph
  Tensor& detach_();
  [[nodiscard]] Tensor variable_data() const;  ///< PyTorch's x.data: as detach(), but with a version of its own
  void set_data(const Tensor& data);           ///< x.data = data: other memory, the same place in the graph
  /// Adds d(this)/d(leaf) to the grad of every leaf that requires it. This must have one element.
  void backward(const BackwardOptions& options = {}) const;
  /// The same for any shape, from the gradient of this tensor.
  void backward(const Tensor& gradient, const BackwardOptions& options = {}) const;

  /// For the library's own folders.
  explicit Tensor(std::shared_ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  [[nodiscard]] TensorImpl& impl() const;
  [[nodiscard]] bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  [[nodiscard]] bool is_unique() const noexcept;  ///< nobody else holds this tensor or its storage
  [[nodiscard]] const void* id() const noexcept { return impl_.get(); }
  /// A binding's place for its own object for this tensor; null at first, never touched here.
  [[nodiscard]] void*& binding_slot() const;

 private:
  static Tensor copy_of(const void* values, std::int64_t count, DType dtype, const Shape& shape);

  std::shared_ptr<TensorImpl> impl_;
};

/// How values are printed; PyTorch's set_printoptions.
struct PrintOptions {
  int precision = 4;
  std::int64_t threshold = 1000;  ///< more elements are cut
  std::int64_t edgeitems = 3;
  int linewidth = 80;
  std::optional<bool> sci_mode;
};
[[nodiscard]] INFEED_API PrintOptions& print_options() noexcept;

INFEED_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace infeed

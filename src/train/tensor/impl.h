#pragma once
/// What a Tensor handle refers to.

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/storage.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// How a view came about: what an in-place write to it may do.
enum class ViewKind : std::uint8_t {
  kDefault,      ///< recorded: writes reach the graph of the base
  kNoGrad,       ///< made without recording
  kMultiOutput,  ///< one of several (split, unbind): writes under recording are refused
};

struct ViewOf {
  Tensor base;  ///< never itself a view
  ViewKind kind;
  std::uint32_t version;  ///< of the storage when grad_fn was made
};

struct HookList {
  std::vector<std::pair<std::uint64_t, TensorHook>> hooks;
  std::uint64_t next_id = 0;
};

struct TensorImpl {
  std::shared_ptr<Storage> storage;
  std::int64_t offset_bytes = 0;
  Shape shape;
  Strides strides;
  DType dtype = DType::kFloat32;
  bool wrapped_number = false;
  bool inference = false;

  // Autograd. A leaf has no grad_fn; its accumulator lives as long as a graph that leads to it.
  bool requires_grad = false;
  bool retains_grad = false;
  int output_nr = 0;
  std::shared_ptr<Node> grad_fn;
  std::weak_ptr<Node> accumulator;
  Tensor grad;
  std::unique_ptr<ViewOf> view;
  std::shared_ptr<HookList> hooks;       ///< a leaf's; those of results are the node's
  std::shared_ptr<HookList> post_hooks;  ///< after accumulation
  void* binding_slot = nullptr;
};

/// True where kernels of a device compute, and the host may not look.
[[nodiscard]] inline bool is_on_device(const Tensor& x) { return x.impl().storage->memory() != nullptr; }

/// The layout that convolutions and windows take: channels last, channels first on a device.
[[nodiscard]] inline MemoryFormat image_format(const Tensor& x) {
  return is_on_device(x) ? MemoryFormat::kContiguous : MemoryFormat::kChannelsLast;
}

/// A tensor over `storage`, outside the graph.
[[nodiscard]] Tensor make_view(std::shared_ptr<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                               const Strides& strides, DType dtype);

/// Another geometry on x's storage, outside the graph. `offset` in elements, from x's first.
[[nodiscard]] Tensor alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides);

/// The same, as a view that autograd knows: writes to it change the history of what it looks at.
[[nodiscard]] Tensor tracked_alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides,
                                   ViewKind kind = ViewKind::kDefault);

/// Strides of an image tensor whose channels are innermost.
[[nodiscard]] Strides channels_last_strides(const Shape& shape) noexcept;

/// True if the elements fill one range of memory, in any order of the dimensions.
[[nodiscard]] bool is_dense(const Shape& shape, const Strides& strides) noexcept;

/// True if two elements have one place.
[[nodiscard]] bool overlaps_itself(const Shape& shape, const Strides& strides) noexcept;

/// `dim` in [0, ndim), from one in [-ndim, ndim); a scalar counts as one dimension. Throws IndexError.
[[nodiscard]] int wrap_dim(int dim, int ndim);
[[nodiscard]] inline int wrap_dim(std::string_view /*op*/, int dim, int ndim) { return wrap_dim(dim, ndim); }

}  // namespace infeed

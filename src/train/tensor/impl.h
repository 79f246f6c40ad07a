#pragma once
/// What a Tensor handle refers to.

#include <memory>
#include <string_view>

#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/storage.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

struct TensorImpl {
  std::shared_ptr<Storage> storage;
  std::int64_t offset_bytes = 0;
  Shape shape;
  Strides strides;
  DType dtype = DType::kFloat32;

  // Autograd. A leaf has no grad_fn; its accumulator lives as long as a graph that leads to it.
  bool requires_grad = false;
  int output_nr = 0;
  std::shared_ptr<Node> grad_fn;
  std::weak_ptr<Node> accumulator;
  Tensor grad;
};

/// A tensor over `storage`, outside the graph.
[[nodiscard]] Tensor make_view(std::shared_ptr<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                               const Strides& strides, DType dtype);

/// Another geometry on x's storage, outside the graph. `offset` in elements, from x's first.
[[nodiscard]] Tensor alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides);

/// Strides of an image tensor whose channels are innermost.
[[nodiscard]] Strides channels_last_strides(const Shape& shape) noexcept;

/// True if the elements fill one range of memory, in any order of the dimensions.
[[nodiscard]] bool is_dense(const Shape& shape, const Strides& strides) noexcept;

/// `dim` in [0, ndim), from one in [-ndim, ndim). Throws IndexError.
[[nodiscard]] int wrap_dim(std::string_view op, int dim, int ndim);

}  // namespace infeed

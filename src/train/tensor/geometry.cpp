#include "train/tensor/geometry.h"

#include <algorithm>

#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {

// Walks both shapes from the innermost dimension. A run of old dimensions that lie as one (stride = stride * size of
// the next inner) may be cut anew, as long as the cut ends where the run does.
std::optional<Strides> view_strides(const Shape& old_shape, const Strides& old_strides, const Shape& shape) {
  if (old_shape.numel() == 0) return Strides::contiguous(shape);
  Strides strides(shape.span());
  int dim = shape.ndim() - 1;
  std::int64_t run_numel = 1;
  std::int64_t run_stride = old_shape.empty() ? 1 : old_strides[old_shape.ndim() - 1];
  for (int old_dim = old_shape.ndim() - 1; old_dim >= 0; --old_dim) {
    run_numel *= old_shape[old_dim];
    const bool run_goes_on =
        old_dim > 0 && (old_shape[old_dim - 1] == 1 || old_strides[old_dim - 1] == run_numel * run_stride);
    if (run_goes_on) continue;
    std::int64_t cut_numel = 1;
    for (; dim >= 0 && (cut_numel < run_numel || shape[dim] == 1); --dim) {
      strides[dim] = cut_numel * run_stride;
      cut_numel *= shape[dim];
    }
    if (cut_numel != run_numel) return std::nullopt;
    if (old_dim > 0) {
      run_numel = 1;
      run_stride = old_strides[old_dim - 1];
    }
  }
  for (; dim >= 0; --dim) strides[dim] = old_shape.numel() * run_stride;
  return strides;
}

Shape resolve_shape(const Shape& old_shape, const Shape& shape) {
  Shape resolved = shape;
  std::int64_t known = 1;
  int unknown = -1;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    if (shape[dim] != -1) {
      require(shape[dim] >= 0, "invalid shape dimension {}", shape[dim]);
      known *= shape[dim];
    } else {
      require(unknown == -1, "only one dimension can be inferred");
      unknown = dim;
    }
  }
  const std::int64_t numel = old_shape.numel();
  require(
      unknown == -1 || known != 0 || numel != 0,
      "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any value "
      "and is ambiguous",
      shape);
  if (unknown != -1 && known > 0 && numel % known == 0) resolved[unknown] = numel / known;
  require((unknown == -1 || resolved[unknown] != -1) && resolved.numel() == numel,
          "shape '{}' is invalid for input of size {}", shape, numel);
  return resolved;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape result = a.ndim() == ndim ? a : b;
  for (int i = 1; i <= ndim; ++i) {
    const std::int64_t size_a = i <= a.ndim() ? a[a.ndim() - i] : 1;
    const std::int64_t size_b = i <= b.ndim() ? b[b.ndim() - i] : 1;
    require(size_a == size_b || size_a == 1 || size_b == 1,
            "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}", size_a,
            size_b, ndim - i);
    result[ndim - i] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

bool is_expandable_to(const Shape& shape, const Shape& target) noexcept {
  if (shape.ndim() > target.ndim()) return false;
  for (int i = 1; i <= shape.ndim(); ++i) {
    const std::int64_t size = shape[shape.ndim() - i];
    if (size != target[target.ndim() - i] && size != 1) return false;
  }
  return true;
}

Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target) {
  Strides result(target.span());
  const int added = target.ndim() - shape.ndim();
  for (int dim = 0; dim < target.ndim(); ++dim) {
    const bool repeated = dim < added || (shape[dim - added] == 1 && target[dim] != 1);
    result[dim] = repeated ? 0 : strides[dim - added];
  }
  return result;
}

}  // namespace infeed

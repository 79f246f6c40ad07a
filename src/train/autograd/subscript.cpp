// x[...]: by index tensors and masks, and as a program writes it.

#include <algorithm>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/in_place.h"
#include "infeed/train/autograd/indexing.h"
#include "infeed/train/autograd/ops.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/copy.h"
#include "train/kernels/order.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using kernels::PutMode;
using Offsets = std::vector<std::int64_t>;

// Where an index by tensors looks: every place of the broadcast indices, and for each the whole of what is not indexed.
struct Selection {
  Shape shape;     // of the result, or of the values to put
  Offsets places;  // in elements of x
  Offsets inner;
  Dims to_result;  // permutation from [places.., inner..] to the result's dimensions
  Shape gathered;  // [places.., inner..]
};

// Masks become the places where they are true.
std::vector<Tensor> without_masks(const Tensor& x, const std::vector<Tensor>& given) {
  std::vector<Tensor> indices;
  for (const Tensor& index : given) {
    if (!index.defined() || (index.dtype() != DType::kBool && index.dtype() != DType::kUInt8)) {
      require<IndexError>(!index.defined() || index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
                          "tensors used as indices must be long, int, byte or bool tensors");
      indices.push_back(index.defined() ? index.detach().to(DType::kInt64).contiguous() : index);
      continue;
    }
    for (int d = 0; d < index.ndim(); ++d) {
      const int at = static_cast<int>(indices.size()) + d;
      require<IndexError>(
          at < x.ndim() && index.shape()[d] == x.shape()[at],
          "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} at index {}",
          index.shape(), d, x.shape(), at);
    }
    const Tensor places = nonzero(index);
    for (int d = 0; d < index.ndim(); ++d) indices.push_back(places.select(1, d).contiguous());
  }
  require<IndexError>(static_cast<int>(indices.size()) <= x.ndim(), "too many indices for tensor of dimension {}",
                      x.ndim());
  indices.resize(static_cast<std::size_t>(x.ndim()));
  return indices;
}

Shape common_shape(const std::vector<Tensor>& indices) {
  Shape common;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    require<IndexError>(
        is_expandable_to(index.shape(), common) || is_expandable_to(common, index.shape()) || common.ndim() > 0,
        "shape mismatch: indexing tensors could not be broadcast together");
    common = broadcast_shape(common, index.shape());
  }
  return common;
}

void add_index(Offsets& places, const Tensor& x, int dim, const Tensor& index, const Shape& common) {
  const Tensor wide = index.expand(common).contiguous();
  const auto* const at = wide.data<std::int64_t>();
  const std::int64_t size = x.shape()[dim];
  for (std::size_t i = 0; i < places.size(); ++i) {
    require<IndexError>(at[i] >= -size && at[i] < size, "index {} is out of bounds for dimension {} with size {}",
                        at[i], dim, size);
    places[i] += (at[i] < 0 ? at[i] + size : at[i]) * x.strides()[dim];
  }
}

Selection select_by(const Tensor& x, const std::vector<Tensor>& given) {
  const std::vector<Tensor> indices = without_masks(x, given);
  const Shape common = common_shape(indices);
  Selection s;
  Shape inner_shape;
  Strides inner_strides;
  int first = -1, last = -1, count = 0;
  s.places.assign(static_cast<std::size_t>(common.numel()), 0);
  for (int dim = 0; dim < x.ndim(); ++dim) {
    const Tensor& index = indices[static_cast<std::size_t>(dim)];
    if (!index.defined()) {
      inner_shape.push_back(x.shape()[dim]);
      inner_strides.push_back(x.strides()[dim]);
      continue;
    }
    if (!x.is_meta()) add_index(s.places, x, dim, index, common);
    first = first < 0 ? dim : first;
    last = dim;
    ++count;
  }
  s.inner = kernels::offsets_of(inner_shape, inner_strides);
  // Neighbouring indices stay where they were, others go to the front.
  const int before = last - first + 1 == count ? std::max(first, 0) : 0;
  s.gathered = common;
  for (const std::int64_t size : inner_shape) s.gathered.push_back(size);
  for (int i = 0; i < before; ++i) s.to_result.push_back(common.ndim() + i);
  for (int i = 0; i < common.ndim(); ++i) s.to_result.push_back(i);
  for (int i = before; i < inner_shape.ndim(); ++i) s.to_result.push_back(common.ndim() + i);
  for (const std::int64_t dim : s.to_result) s.shape.push_back(s.gathered[static_cast<int>(dim)]);
  return s;
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
  const Selection s = select_by(x, indices);
  const Tensor rows = Tensor::empty(s.gathered, x.options());
  kernels::take(rows, x, s.places, s.inner);
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return rows.permute(s.to_result).contiguous();
  }();
  return record("IndexBackward0", {x}, y, {}, [shape = x.shape(), indices](const Pass& p) {
    return index_put(Tensor::zeros(shape, p.g().options()), indices, p.g(), true);
  });
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
  const Tensor out = x.detach().clone(MemoryFormat::kContiguous);
  const Selection s = select_by(out, indices);
  require(is_expandable_to(values.shape(), s.shape),
          "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}", values.shape(),
          s.shape);
  require(
      values.dtype() == x.dtype() || values.ndim() == 0,
      "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
      x.dtype(), values.dtype());
  Dims back = s.to_result;
  for (int i = 0; i < back.ndim(); ++i) back[static_cast<int>(s.to_result[i])] = i;
  const Tensor rows = [&] {
    const NoGradGuard no_grad;
    return values.detach().to(x.dtype()).expand(s.shape).permute(back).contiguous();
  }();
  kernels::put(out, s.places, s.inner, rows, accumulate ? PutMode::kAdd : PutMode::kSet);
  return record("IndexPutBackward0", {x, values}, out, {}, [indices, accumulate](const Pass& p) {
    if (p.needs(0)) p.give(0, accumulate ? p.g() : index_put(p.g(), indices, Tensor::zeros({}, p.g().options())));
    if (p.needs(1)) p.give(1, index(p.g(), indices));
  });
}
namespace {

struct Resolved {
  Tensor view;
  std::vector<Tensor> tensors;  // by dimension of the view, a mask for several; empty: the view is all
  int covered = 0;              // dimensions of the view that `tensors` speaks of
};

int dims_taken_by(const Index& index) {
  if (std::holds_alternative<NewAxis>(index) || std::holds_alternative<Ellipsis>(index) ||
      std::holds_alternative<bool>(index))
    return 0;
  if (const auto* tensor = std::get_if<Tensor>(&index)) {
    const bool mask = tensor->dtype() == DType::kBool || tensor->dtype() == DType::kUInt8;
    return mask ? tensor->ndim() : 1;
  }
  return 1;
}

void take_tensor(Resolved& r, int& dim, const Tensor& tensor) {
  for (; r.covered < dim; ++r.covered) r.tensors.emplace_back();
  if (tensor.dtype() == DType::kBool && tensor.ndim() == 0) {  // as x[True]: a new dimension of 1 or 0
    r.view = r.view.unsqueeze(dim++);
    r.tensors.push_back(Tensor::zeros({tensor.item<bool>() ? 1 : 0}, DType::kInt64));
  } else {
    r.tensors.push_back(tensor);
    dim += dims_taken_by(tensor);
  }
  r.covered = dim;
}

Resolved resolve(const Tensor& x, const std::vector<Index>& indices) {
  int taken = 0;
  for (const Index& index : indices) taken += dims_taken_by(index);
  require<IndexError>(taken <= x.ndim(), "too many indices for tensor of dimension {}", x.ndim());
  Resolved r{x, {}, 0};
  int dim = 0;
  for (const Index& index : indices) {
    if (const auto* number = std::get_if<std::int64_t>(&index)) {
      const std::int64_t size = r.view.size(dim);
      require<IndexError>(*number >= -size && *number < size, "index {} is out of bounds for dimension {} with size {}",
                          *number, dim, size);
      r.view = r.view.select(dim, *number);
    } else if (const auto* slice = std::get_if<Slice>(&index)) {
      const bool whole = !slice->start && !slice->stop && slice->step == 1;
      if (!whole) r.view = r.view.slice(dim, *slice);
      ++dim;
    } else if (std::holds_alternative<NewAxis>(index)) {
      r.view = r.view.unsqueeze(dim++);
    } else if (std::holds_alternative<Ellipsis>(index)) {
      dim += x.ndim() - taken;
    } else if (const auto* flag = std::get_if<bool>(&index)) {
      take_tensor(r, dim, Tensor::full({}, *flag, DType::kBool));
    } else {
      take_tensor(r, dim, std::get<Tensor>(index));
    }
  }
  return r;
}

}  // namespace

namespace {

// x[...] and x[:]: another tensor, the same elements.
Tensor alias_of(const Tensor& x) {
  return record("AliasBackward0", {x}, tracked_alias(x, 0, x.shape(), x.strides()), {},
                [](const Pass& p) { return p.g(); });
}

}  // namespace

Tensor Tensor::index(const std::vector<Index>& indices) const {
  const Resolved r = resolve(*this, indices);
  if (!r.tensors.empty()) return infeed::index(r.view, r.tensors);
  return r.view.is_same(*this) ? alias_of(*this) : r.view;
}

void Tensor::index_put(const std::vector<Index>& indices, const Tensor& value) {
  Resolved r = resolve(*this, indices);
  if (r.tensors.empty()) {
    Tensor source = value;  // leading dimensions of size 1 may be left out
    while (source.ndim() > r.view.ndim() && source.size(0) == 1) source = source.squeeze(0);
    r.view.copy_(source);
    return;
  }
  const Tensor plain = value.dtype() == dtype() ? value : value.to(dtype());
  in_place(r.view, {plain}, [&](const Tensor& t) { return infeed::index_put(t, r.tensors, plain); });
}

}  // namespace infeed

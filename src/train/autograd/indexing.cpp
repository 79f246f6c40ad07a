// Picking and placing elements. Every operation here is a list of offsets and one of the kernels take and put.

#include "infeed/train/autograd/indexing.h"

#include <algorithm>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/in_place.h"
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

constexpr std::int64_t kWhole[] = {0};  // single elements

Tensor as_index(const Tensor& index, std::string_view op) {
  require(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
          "{}(): Expected dtype int32/int64 for index", op);
  return index.detach().to(DType::kInt64).contiguous();
}

// Offsets into x of index[i][j] at (.., index, ..).
Offsets gather_offsets(std::string_view op, const Tensor& x, int dim, const Tensor& index) {
  require(x.ndim() == index.ndim() || x.ndim() == 0 || index.ndim() == 0,
          "Index tensor must have the same number of dimensions as {} tensor", op == "gather" ? "input" : "self");
  for (int d = 0; d < index.ndim() && d < x.ndim(); ++d)
    require(
        d == dim || index.shape()[d] <= x.shape()[d],
        "Size does not match at dimension {} expected index {} to be no larger than self {} apart from dimension {}", d,
        index.shape(), x.shape(), dim);
  if (x.is_meta() || index.is_meta()) return {};
  Strides strides =
      x.ndim() == 0 ? Strides(std::vector<std::int64_t>(static_cast<std::size_t>(index.ndim()), 0)) : x.strides();
  if (index.ndim() == 0) strides = {};
  const std::int64_t step = x.ndim() == 0 ? 0 : x.strides()[dim];
  const std::int64_t size = x.ndim() == 0 ? 1 : x.shape()[dim];
  if (strides.ndim() > dim) strides[dim] = 0;
  Offsets offsets = kernels::offsets_of(index.shape(), strides);
  const Tensor places = as_index(index, op);
  const auto* const place = places.data<std::int64_t>();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    require(place[i] >= 0 && place[i] < size, "index {} is out of bounds for dimension {} with size {}", place[i], dim,
            size);
    offsets[i] += place[i] * step;
  }
  return offsets;
}

Tensor gathered(const Tensor& x, int dim, const Tensor& index) {
  const Offsets offsets = gather_offsets("gather", x, dim, index);
  const Tensor out = Tensor::empty(index.shape(), x.options());
  kernels::take(out, x, offsets, kWhole);
  return out;
}

// A copy of x, with `source` put or added at `index`.
Tensor scattered(const Tensor& x, int dim, const Tensor& index, const Tensor& source, PutMode mode) {
  require(source.dtype() == x.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
  for (int d = 0; d < index.ndim(); ++d)
    require(source.ndim() == 0 || index.shape()[d] <= source.shape()[d],
            "Expected index {} to be no larger than src {}", index.shape(), source.shape());
  const Tensor out = x.detach().clone(MemoryFormat::kContiguous);
  const Offsets offsets = gather_offsets("scatter", out, dim, index);
  Tensor values = source.detach();
  for (int d = 0; d < index.ndim() && source.ndim() != 0; ++d) values = values.narrow(d, 0, index.shape()[d]);
  kernels::put(out, offsets, kWhole, values.expand(index.shape()).contiguous(), mode);
  return out;
}

}  // namespace

Tensor gather(const Tensor& x, int dim, const Tensor& index) {
  const int along = wrap_dim(dim, x.ndim());
  return record("GatherBackward0", {x}, gathered(x, along, index), {index}, [shape = x.shape(), along](const Pass& p) {
    return scatter_add(Tensor::zeros(shape, p.g().options()), along, p.saved(0), p.g());
  });
}

Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& source) {
  const int along = wrap_dim(dim, x.ndim());
  const Tensor values = source.ndim() == 0 && source.dtype() != x.dtype() ? source.to(x.dtype()) : source;
  return record("ScatterBackward0", {x, values}, scattered(x, along, index, values, PutMode::kSet), {index},
                [along](const Pass& p) {
                  const Tensor at = p.saved(0);
                  if (p.needs(0)) p.give(0, scatter(p.g(), along, at, Tensor::zeros(at.shape(), p.g().options())));
                  if (p.needs(1)) p.give(1, gather(p.g(), along, at));
                });
}

Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& source) {
  const int along = wrap_dim(dim, x.ndim());
  return record("ScatterAddBackward0", {x, source}, scattered(x, along, index, source, PutMode::kAdd), {index},
                [along, from = source.shape()](const Pass& p) {
                  if (p.needs(0)) p.give(0, p.g());
                  if (!p.needs(1)) return;
                  Tensor g = gather(p.g(), along, p.saved(0));
                  std::vector<std::int64_t> rest;  // what the index left out of the source got nothing
                  for (int d = from.ndim() - 1; d >= 0; --d) {
                    rest.push_back(0);
                    rest.push_back(from[d] - g.size(d));
                  }
                  p.give(1, g.shape() == from ? g : pad(g, rest));
                });
}

Tensor index_select(const Tensor& x, int dim, const Tensor& at) {
  require<IndexError>(at.ndim() <= 1,
                      "index_select(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}",
                      at.ndim(), at.dtype(), at.shape());
  const int along = wrap_dim(dim, x.ndim());
  std::vector<Tensor> indices(static_cast<std::size_t>(along) + 1);
  const Tensor vector = as_index(at, "index_select").reshape({at.numel()});
  if (!vector.is_meta() && vector.numel() != 0 && x.ndim() != 0)
    require<IndexError>(min(vector).item<std::int64_t>() >= 0 && max(vector).item<std::int64_t>() < x.size(along),
                        "index out of range in self");
  indices.back() = vector;
  if (x.ndim() == 0) return x.clone();
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return index(x.detach(), indices);
  }();
  return record("IndexSelectBackward0", {x}, y, {vector}, [shape = x.shape(), along](const Pass& p) {
    return index_add(Tensor::zeros(shape, p.g().options()), along, p.saved(0), p.g());
  });
}

Tensor index_add(const Tensor& x, int dim, const Tensor& at, const Tensor& source, const Scalar& alpha) {
  const int along = wrap_dim(dim, x.ndim());
  std::vector<Tensor> indices(static_cast<std::size_t>(along) + 1);
  indices.back() = as_index(at, "index_add").reshape({at.numel()});
  const Tensor values = alpha.to_double() == 1.0 ? source : source * Tensor::wrapped(alpha);
  return index_put(x, indices, values, true);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  require(mask.dtype() == DType::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype {}",
          mask.dtype());
  require(value.ndim() == 0,
          "masked_fill only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).", value.ndim());
  require(can_cast(value.dtype(), x.dtype()), "value cannot be converted to type {} without overflow", x.dtype());
  const Tensor plain = value.detach().to(x.dtype());
  Tensor y = empty_result(x, mask, x.dtype());
  kernels::ternary(kernels::TernaryOp::kWhere, y, mask, plain, x, x.dtype());
  return record("MaskedFillBackward0", {x, value}, y, {mask}, [](const Pass& p) {
    if (p.needs(0)) p.give(0, where(p.saved(0), 0.0, p.g()));
    if (p.needs(1)) p.give(1, sum(where(p.saved(0), p.g(), 0.0)));
  });
}

Tensor nonzero(const Tensor& x) {
  require(!x.is_meta(), "nonzero is not supported for meta tensors: the result's shape depends on the values");
  const Tensor flags = ne(x.detach(), 0).contiguous();
  const auto* const flag = reinterpret_cast<const std::uint8_t*>(flags.data_ptr());
  Offsets places;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (flag[i] == 0) continue;
    std::int64_t rest = i;
    for (int d = x.ndim() - 1; d >= 0; --d) {
      places.push_back(rest % x.shape()[d]);
      rest /= x.shape()[d];
    }
    std::reverse(places.end() - x.ndim(), places.end());
  }
  const std::int64_t count =
      x.ndim() == 0 ? (x.numel() != 0 && flag[0] != 0 ? 1 : 0) : static_cast<std::int64_t>(places.size()) / x.ndim();
  return Tensor::from_values(std::span<const std::int64_t>(places), {count, x.ndim()});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require(mask.dtype() == DType::kBool, "masked_select: expected BoolTensor for mask");
  const Shape shape = broadcast_shape(x.shape(), mask.shape());
  return index(x.expand(shape), {mask.expand(shape)});
}

Tensor one_hot(const Tensor& classes, std::int64_t num_classes) {
  require(classes.dtype() == DType::kInt64, "one_hot is only applicable to index tensor of type LongTensor.");
  if (num_classes < 0) num_classes = max(classes).item<std::int64_t>() + 1;
  const Tensor all = arange(0, num_classes, 1, TensorOptions(DType::kInt64, classes.device()));
  return eq(classes.unsqueeze(-1), all).to(DType::kInt64);
}

// ---- x[tensors] ----

namespace {

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
      indices.push_back(index.defined() ? as_index(index, "index") : index);
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

// ---- x[...] ----

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

Tensor as_strided_backward(const Tensor& g, const Shape& x_shape, const Strides& x_strides, const Shape& shape,
                           const Strides& strides, std::int64_t offset) {
  std::int64_t extent = 1;
  for (int d = 0; d < x_shape.ndim(); ++d) extent += x_shape[d] == 0 ? 0 : (x_shape[d] - 1) * x_strides[d];
  const Tensor memory = Tensor::zeros({extent}, g.options());
  Offsets places = kernels::offsets_of(shape, strides);
  for (std::int64_t& place : places) {
    place += offset;
    require(place >= 0 && place < extent, "as_strided: the gradient of elements outside the input is not defined");
  }
  if (!g.is_meta()) kernels::put(memory, places, kWhole, g.detach().contiguous(), PutMode::kAdd);
  const Tensor out = [&] {
    const NoGradGuard no_grad;
    return memory.as_strided(x_shape, x_strides, 0).clone(MemoryFormat::kContiguous);
  }();
  return record("AsStridedBackward0", {g}, out, {}, [x_shape, x_strides, shape, strides, offset](const Pass& p) {
    Tensor placed = Tensor::empty_strided(x_shape, x_strides, p.g().options());
    kernels::copy(placed, p.g());
    return placed.as_strided(shape, strides, offset).clone(MemoryFormat::kContiguous);
  });
}

}  // namespace infeed

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
  Tensor out = Tensor::empty(index.shape(), x.options());
  kernels::take(out, x, offsets, kWhole);
  return out;
}

// A copy of x, with `source` put or added at `index`.
Tensor scattered(const Tensor& x, int dim, const Tensor& index, const Tensor& source, PutMode mode) {
  require(source.dtype() == x.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
  for (int d = 0; d < index.ndim(); ++d)
    require(source.ndim() == 0 || index.shape()[d] <= source.shape()[d],
            "Expected index {} to be no larger than src {}", index.shape(), source.shape());
  Tensor out = x.detach().clone(MemoryFormat::kContiguous);
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
  require(value.is_wrapped_number() || can_cast(value.dtype(), x.dtype()),
          "value cannot be converted to type {} without overflow", x.dtype());
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
  if (classes.numel() != 0 && !classes.is_meta()) {
    const auto last = max(classes).item<std::int64_t>();
    require(min(classes).item<std::int64_t>() >= 0, "Class values must be non-negative.");
    require(num_classes < 0 || last < num_classes, "Class values must be smaller than num_classes.");
    if (num_classes < 0) num_classes = last + 1;
  }
  require(num_classes > 0, "Can not infer total number of classes from empty tensor.");
  const Tensor all = arange(0, num_classes, 1, TensorOptions(DType::kInt64, classes.device()));
  return eq(classes.unsqueeze(-1), all).to(DType::kInt64);
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

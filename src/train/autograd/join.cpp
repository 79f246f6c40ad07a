// Joining and cutting, order and running sums.

#include "infeed/train/autograd/join.h"

#include <algorithm>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/copy.h"
#include "train/kernels/order.h"
#include "train/kernels/reduce.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

// PyTorch lets empty one-dimensional tensors through, whatever the others' shape.
bool skipped(const Tensor& x) { return x.ndim() == 1 && x.size(0) == 0; }

Shape joined_shape(std::span<const Tensor> tensors, int dim) {
  Shape shape;
  bool found = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    require(x.ndim() > 0, "zero-dimensional tensor (at position {}) cannot be concatenated", i);
    if (skipped(x) && tensors.size() > 1) continue;
    if (!found) {
      shape = x.shape();
      found = true;
      continue;
    }
    require(x.ndim() == shape.ndim(), "Tensors must have same number of dimensions: got {} and {}", shape.ndim(),
            x.ndim());
    for (int d = 0; d < x.ndim(); ++d)
      require(d == dim || x.shape()[d] == shape[d],
              "Sizes of tensors must match except in dimension {}. Expected size {} but got size {} for tensor number "
              "{} in "
              "the list.",
              dim, shape[d], x.shape()[d], i);
    shape[dim] += x.shape()[dim];
  }
  return found ? shape : Shape{0};
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, int dim) {
  require<ValueError>(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  int ndim = 1;
  DType dtype = tensors[0].dtype();
  for (const Tensor& x : tensors) {
    ndim = std::max(ndim, x.ndim());
    dtype = promote_types(dtype, x.dtype());
    require(x.device() == tensors[0].device(),
            "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
            device_name(tensors[0].device()), device_name(x.device()));
  }
  const int along = wrap_dim(dim, ndim);
  const Shape shape = joined_shape(tensors, along);
  const bool image = ndim == 4 && tensors[0].is_contiguous(MemoryFormat::kChannelsLast) && !tensors[0].is_contiguous();
  Tensor out = Tensor::empty(shape, TensorOptions(dtype, tensors[0].device()),
                             image ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous);
  std::vector<std::int64_t> sizes;
  std::int64_t at = 0;
  for (const Tensor& x : tensors) {
    const std::int64_t size = skipped(x) && ndim != 1 ? 0 : x.size(along);
    Shape part = shape;
    part[along] = size;
    if (size != 0) kernels::copy(alias(out, at * out.strides()[along], part, out.strides()), x);
    sizes.push_back(size);
    at += size;
  }
  record_all("CatBackward0", tensors, {&out, 1}, {}, [sizes, along](const Pass& p) {
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); start += sizes[i++]) {
      if (p.needs(static_cast<int>(i)) && sizes[i] != 0)
        p.give(static_cast<int>(i), p.g().narrow(along, start, sizes[i]));
    }
  });
  return out;
}

Tensor stack(std::span<const Tensor> tensors, int dim) {
  require(!tensors.empty(), "stack expects a non-empty TensorList");
  const int along = wrap_dim(dim, tensors[0].ndim() + 1);
  std::vector<Tensor> lifted;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].shape() == tensors[0].shape(),
            "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}", tensors[0].shape(),
            tensors[i].shape(), i);
    const NoGradGuard no_grad;  // the node below is one for all
    lifted.push_back(tensors[i].detach().unsqueeze(along));
  }
  Tensor out = cat(lifted, along);
  record_all("StackBackward0", tensors, {&out, 1}, {}, [n = tensors.size(), along](const Pass& p) {
    for (std::size_t i = 0; i < n; ++i) {
      const int k = static_cast<int>(i);
      if (p.needs(k)) p.give(k, p.g().select(along, k));
    }
  });
  return out;
}

namespace {

// Views of consecutive ranges, one node for all.
std::vector<Tensor> cut(std::string_view name, const Tensor& x, std::span<const std::int64_t> sizes, int along,
                        bool drop) {
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    Shape shape;
    Strides strides;
    for (int d = 0; d < x.ndim(); ++d) {
      if (d == along && drop) continue;
      shape.push_back(d == along ? size : x.shape()[d]);
      strides.push_back(x.strides()[d]);
    }
    parts.push_back(tracked_alias(x, at * x.strides()[along], shape, strides, ViewKind::kMultiOutput));
    at += size;
  }
  if (!is_floating_point(x.dtype())) return parts;
  record_all(name, {&x, 1}, parts, {},
             [shape = x.shape(), all = std::vector<std::int64_t>(sizes.begin(), sizes.end()), along, drop,
              options = x.options()](const Pass& p) {
               std::vector<Tensor> grads;
               for (std::size_t i = 0; i < all.size(); ++i) {
                 Shape part = shape;
                 part[along] = all[i];
                 grads.push_back(!p.grads[i].defined() ? Tensor::zeros(part, options)
                                 : drop                ? p.grads[i].unsqueeze(along)
                                                       : p.grads[i]);
               }
               return cat(grads, along);
             });
  return parts;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::int64_t split_size, int dim) {
  require(x.ndim() > 0, "split expects at least a 1-dimensional tensor");
  const int along = wrap_dim(dim, x.ndim());
  const std::int64_t size = x.size(along);
  require(split_size >= 0, "split expects split_size be non-negative, but got split_size={}", split_size);
  require(split_size > 0 || (split_size == 0 && size == 0),
          "split_size can only be 0 if dimension size is 0, but got dimension size of {}", size);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < size; at += split_size) sizes.push_back(std::min(split_size, size - at));
  if (sizes.empty()) sizes.push_back(0);
  return cut("SplitBackward0", x, sizes, along, false);
}

std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim) {
  const int along = wrap_dim(dim, x.ndim());
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  require(total == x.size(along),
          "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but got "
          "split_sizes summing to {}",
          x.size(along), along, total);
  return cut("SplitWithSizesBackward0", x, sizes, along, false);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim) {
  require(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  return split(x, std::max<std::int64_t>(1, (x.size(dim) + chunks - 1) / chunks), dim);
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  const int along = wrap_dim(dim, x.ndim());
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(x.size(along)), 1);
  return cut("UnbindBackward0", x, ones, along, true);
}

// [a, b] as [1, a, 1, b], repeated along the new dimensions.
Tensor repeat(const Tensor& x, const Shape& repeats) {
  require(repeats.ndim() >= x.ndim(),
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Shape lifted, wide, flat;
  for (int d = 0; d < repeats.ndim(); ++d) {
    const int own = d - (repeats.ndim() - x.ndim());
    const std::int64_t size = own < 0 ? 1 : x.shape()[own];
    if (repeats[d] != 1) {
      lifted.push_back(1);
      wide.push_back(repeats[d]);
    }
    lifted.push_back(size);
    wide.push_back(size);
    flat.push_back(size * repeats[d]);
  }
  return x.reshape(lifted).expand(wide).clone(MemoryFormat::kContiguous).view(flat);
}

Tensor flip(const Tensor& x, const Dims& dims) {
  Tensor y = x.detach();
  for (const std::int64_t dim : dims) {
    if (wrap_dim(static_cast<int>(dim), x.ndim()) == 0 && x.ndim() == 0) continue;
    const std::int64_t n = y.size(static_cast<int>(dim));
    y = index_select(y, static_cast<int>(dim), arange(n - 1, -1, -1, TensorOptions(DType::kInt64, x.device())));
  }
  return record("FlipBackward0", {x}, dims.empty() ? y.clone() : y, {},
                [dims](const Pass& p) { return flip(p.g(), dims); });
}

Tensor roll(const Tensor& x, std::int64_t shift, int dim) {
  const std::int64_t n = x.size(dim);
  if (n == 0) return x.clone();
  const std::int64_t cut_at = ((n - shift) % n + n) % n;
  return cat({x.narrow(dim, cut_at, n - cut_at), x.narrow(dim, 0, cut_at)}, dim);
}

namespace {

Tensor triangle(std::string_view name, const Tensor& x, std::int64_t diagonal, bool upper) {
  require(x.ndim() >= 2, "{}: input tensor must have at least 2 dimensions", upper ? "triu" : "tril");
  const TensorOptions indices(DType::kInt64, x.device());
  const Tensor rows = arange(0, x.size(-2), 1, indices).unsqueeze(1);
  const Tensor columns = arange(0, x.size(-1), 1, indices);
  const Tensor kept = upper ? ge(columns - rows, diagonal) : le(columns - rows, diagonal);
  const Tensor y = where(kept, x.detach(), Tensor::zeros({}, x.options()));
  return record(name, {x}, y, {}, [diagonal, upper](const Pass& p) {
    return triangle(upper ? "TriuBackward0" : "TrilBackward0", p.g(), diagonal, upper);
  });
}

}  // namespace

Tensor triu(const Tensor& x, std::int64_t diagonal) { return triangle("TriuBackward0", x, diagonal, true); }
Tensor tril(const Tensor& x, std::int64_t diagonal) { return triangle("TrilBackward0", x, diagonal, false); }

Tensor cumsum(const Tensor& x, int dim) {
  const int along = wrap_dim(dim, x.ndim());
  Tensor y =
      Tensor::empty(x.shape(), TensorOptions(is_floating_point(x.dtype()) ? x.dtype() : DType::kInt64, x.device()));
  kernels::cumsum(y, x, along);
  return record("CumsumBackward0", {x}, y, {}, [along](const Pass& p) {
    if (p.g().ndim() == 0) return p.g();
    return flip(cumsum(flip(p.g(), {along}), along), {along});
  });
}

Tensor cumprod(const Tensor& x, int dim) {
  if (!is_floating_point(x.dtype()) && x.dtype() != DType::kInt64) return cumprod(x.to(DType::kInt64), dim);
  std::vector<Tensor> products = x.ndim() == 0 ? std::vector<Tensor>() : unbind(widened(x), dim);
  if (products.empty()) return x.clone();
  for (std::size_t i = 1; i < products.size(); ++i) products[i] = products[i - 1] * products[i];
  return stack(products, wrap_dim(dim, x.ndim())).to(x.dtype());
}

namespace {

// The source of each place of a padded dimension.
Tensor padded_index(std::int64_t n, std::int64_t before, std::int64_t after, PadMode mode, DeviceId device) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = -before; i < n + after; ++i) {
    std::int64_t at = i;
    if (mode == PadMode::kReplicate) at = std::clamp<std::int64_t>(i, 0, n - 1);
    if (mode == PadMode::kCircular) at = (i % n + n) % n;
    if (mode == PadMode::kReflect) at = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    require(at >= 0 && at < n,
            "Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) of a "
            "dimension of "
            "size {}",
            before, after, n);
    places.push_back(at);
  }
  return Tensor::from_values(std::span<const std::int64_t>(places), {static_cast<std::int64_t>(places.size())})
      .to(TensorOptions(device));
}

Tensor constant_pad(const Tensor& x, std::span<const std::int64_t> padding, double value) {
  Shape shape = x.shape();
  Tensor inner = x;
  for (std::size_t i = 0; i < padding.size() / 2; ++i) {
    const int dim = x.ndim() - 1 - static_cast<int>(i);
    const std::int64_t before = padding[2 * i];
    const std::int64_t after = padding[2 * i + 1];
    shape[dim] += before + after;
    require(shape[dim] >= 0,
            "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is invalid. "
            "Check dimension {} of your input.",
            x.shape()[dim], before, after, dim);
    const std::int64_t from = std::max<std::int64_t>(-before, 0);
    inner = inner.narrow(dim, from, inner.size(dim) - from - std::max<std::int64_t>(-after, 0));
  }
  Tensor out = Tensor::full(shape, value, x.options());
  Tensor place = out;
  for (std::size_t i = 0; i < padding.size() / 2; ++i) {
    const int dim = x.ndim() - 1 - static_cast<int>(i);
    place = place.narrow(dim, std::max<std::int64_t>(padding[2 * i], 0), inner.size(dim));
  }
  place.copy_(inner);
  return out;
}

}  // namespace

Tensor pad(const Tensor& x, std::span<const std::int64_t> padding, PadMode mode, double value) {
  require(padding.size() % 2 == 0, "Padding length must be divisible by 2");
  require(static_cast<int>(padding.size()) <= 2 * x.ndim(),
          "Padding length should be less than or equal to two times the input dimension but got padding length {} and "
          "input of "
          "dimension {}",
          padding.size(), x.ndim());
  if (mode != PadMode::kConstant) {
    Tensor y = x;
    for (std::size_t i = 0; i < padding.size() / 2; ++i) {
      const int dim = x.ndim() - 1 - static_cast<int>(i);
      y = index_select(y, dim, padded_index(y.size(dim), padding[2 * i], padding[2 * i + 1], mode, x.device()));
    }
    return y;
  }
  const std::vector<std::int64_t> amounts(padding.begin(), padding.end());
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return constant_pad(x.detach(), padding, value);
  }();
  return record("ConstantPadNdBackward0", {x}, y, {}, [amounts](const Pass& p) {
    std::vector<std::int64_t> back;
    for (const std::int64_t amount : amounts) back.push_back(-amount);
    return pad(p.g(), back);
  });
}

namespace {

ValuesAndIndices ordered(std::string_view name, const Tensor& x, int dim, std::int64_t k, bool descending) {
  if (x.ndim() == 0) return {x.clone(), Tensor::zeros({}, TensorOptions(DType::kInt64, x.device()))};
  const int along = wrap_dim(dim, x.ndim());
  const Tensor indices = kernels::sorted_indices(x, along, k, descending);
  const Tensor values = [&] {
    const NoGradGuard no_grad;
    return gather(x.detach(), along, indices);
  }();
  return {record(name, {x}, values, {indices},
                 [shape = x.shape(), along](const Pass& p) {
                   return scatter_add(Tensor::zeros(shape, p.g().options()), along, p.saved(0), p.g());
                 }),
          indices};
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, int dim, bool descending) {
  return ordered("SortBackward0", x, dim, x.ndim() == 0 ? 1 : x.size(dim), descending);
}
Tensor argsort(const Tensor& x, int dim, bool descending) { return sort(x.detach(), dim, descending).indices; }

ValuesAndIndices topk(const Tensor& x, std::int64_t k, int dim, bool largest) {
  require(k >= 0 && k <= (x.ndim() == 0 ? 1 : x.size(dim)), "selected index k out of range");
  return ordered("TopkBackward0", x, dim, k, largest);
}

}  // namespace infeed

// Sums, means and extremes, and their backward.

#include <algorithm>
#include <cmath>
#include <limits>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/autograd/reduction.h"
#include "infeed/train/tensor/warning.h"
#include "train/autograd/autocast.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/reduce.h"
#include "train/kernels/softmax.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using kernels::ReduceOp;

// In range, distinct; none given: all.
Dims reduced_dims(const Tensor& x, const Dims& given) {
  Dims dims;
  for (const std::int64_t dim : given) {
    const int at = wrap_dim(static_cast<int>(dim), x.ndim());
    require(std::find(dims.begin(), dims.end(), at) == dims.end(), "dim {} appears multiple times in the list of dims",
            at);
    if (x.ndim() > 0) dims.push_back(at);
  }
  for (int dim = 0; given.empty() && dim < x.ndim(); ++dim) dims.push_back(dim);
  return dims;
}

Shape shape_of(const Tensor& x, const Dims& dims, bool keepdim) {
  Shape shape;
  for (int dim = 0; dim < x.ndim(); ++dim) {
    const bool dropped = std::find(dims.begin(), dims.end(), dim) != dims.end();
    if (!dropped) shape.push_back(x.shape()[dim]);
    if (dropped && keepdim) shape.push_back(1);
  }
  return shape;
}

// A result, or its gradient, with the reduced dimensions put back as 1.
Tensor with_ones(const Tensor& y, const Shape& x, const Dims& dims) {
  Shape shape = x;
  for (const std::int64_t dim : dims) shape[static_cast<int>(dim)] = 1;
  return y.shape() == shape ? y : y.reshape(shape);
}

Tensor without_ones(const Tensor& kept, const Tensor& x, const Dims& dims, bool keepdim) {
  return keepdim ? kept : alias(kept, 0, shape_of(x, dims, false), Strides::contiguous(shape_of(x, dims, false)));
}

double count_of(const Tensor& x, const Dims& dims) {
  double count = 1.0;
  for (const std::int64_t dim : dims) count *= static_cast<double>(x.shape()[static_cast<int>(dim)]);
  return count;
}

DType summed_dtype(const Tensor& x, std::optional<DType> dtype) {
  return dtype.value_or(is_floating_point(x.dtype()) ? x.dtype() : DType::kInt64);
}

Tensor summed(std::string_view name, const Tensor& given, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = dtype && *dtype != given.dtype() ? given.to(*dtype) : given;
  const Tensor kept = kernels::sum_keepdim(x, dims);
  const Tensor out = without_ones(kept, x, dims, keepdim);
  return record(name, {x}, out.dtype() == summed_dtype(x, dtype) ? out : out.to(summed_dtype(x, dtype)), {},
                [shape = x.shape(), dims](const Pass& p) { return with_ones(p.g(), shape, dims).expand(shape); });
}

// The sum over the count, rounded once.
Tensor averaged(std::string_view name, const Tensor& given, const Dims& dims, bool keepdim,
                std::optional<DType> dtype) {
  const Tensor x = dtype && *dtype != given.dtype() ? given.to(*dtype) : given;
  require(is_floating_point(x.dtype()),
          "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
          x.dtype());
  const double count = count_of(x, dims);
  Tensor kept = kernels::sum_keepdim(x, dims);
  kernels::binary(kernels::BinaryOp::kDiv, kept, kept, Tensor(count));
  return record(
      name, {x}, without_ones(kept, x, dims, keepdim).to(x.dtype()), {},
      [shape = x.shape(), dims, count](const Pass& p) { return with_ones(p.g() / count, shape, dims).expand(shape); });
}

Tensor without_record(auto&& f) {
  const NoGradGuard no_grad;
  return f();
}

}  // namespace

Tensor sum(const Tensor& x, std::optional<DType> dtype) {
  return summed("SumBackward0", x, reduced_dims(x, {}), false, dtype);
}
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  return summed("SumBackward1", x, reduced_dims(x, dims), keepdim, dtype);
}
Tensor mean(const Tensor& x, std::optional<DType> dtype) {
  return averaged("MeanBackward0", x, reduced_dims(x, {}), false, dtype);
}
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  return averaged("MeanBackward1", x, reduced_dims(x, dims), keepdim, dtype);
}

namespace {

// Of every element along `dim`, the product of those before it times those behind it: differentiable at zeros.
Tensor product_of_others(const Tensor& x, int dim) {
  const std::int64_t n = x.size(dim);
  const Tensor one = ones_like(x.narrow(dim, 0, 1));
  const Tensor before = cumprod(cat({one, x.narrow(dim, 0, n - 1)}, dim), dim);
  const Tensor behind = cumprod(cat({one, flip(x.narrow(dim, 1, n - 1), {dim})}, dim), dim);
  return before * flip(behind, {dim});
}

// The product of all others: y / x, the product of the rest for a single zero, 0 beside another zero.
Tensor product(std::string_view name, const Tensor& given, const Dims& dims, bool keepdim) {
  const Tensor x = amp::is_active() ? amp::converted(given, DType::kFloat32) : given;
  const Tensor kept = kernels::reduce_keepdim(ReduceOp::kProd, x, dims, summed_dtype(x, {}));
  return record(name, {x}, without_ones(kept, x, dims, keepdim), {x}, [dims](const Pass& p) {
    const Tensor in = p.saved(0);
    const Tensor zero = eq(in, 0.0);
    const Tensor zeros = sum(zero, dims, true);
    if (grad_enabled() && max(zeros).item<std::int64_t>() > 0) {
      const bool line = dims.ndim() == 1;
      const Tensor others = product_of_others(line ? in : in.flatten(), line ? static_cast<int>(dims[0]) : 0);
      return with_ones(p.g(), in.shape(), dims) * others.reshape(in.shape());
    }
    const Tensor safe = where(zero, 1.0, in);
    const Tensor rest = product("ProdBackward1", safe, dims, true);
    const Tensor others = where(zero, where(eq(zeros, 1), rest, 0.0), where(eq(zeros, 0), rest / safe, 0.0));
    return with_ones(p.g(), in.shape(), dims) * others;
  });
}

}  // namespace

Tensor prod(const Tensor& x) { return product("ProdBackward0", x, reduced_dims(x, {}), false); }
Tensor prod(const Tensor& x, int dim, bool keepdim) {
  return product("ProdBackward1", x, reduced_dims(x, {dim}), keepdim);
}

namespace {

void check_freedom(std::string_view name, double count, double correction) {
  if (count - correction <= 0.0)
    warn(fmt::format(
        "{}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
        "numel divided by output numel).",
        name));
}

Tensor variance(const Tensor& x, const Dims& dims, double freedom) {
  return without_record([&] {
    const Tensor distance = x - mean(x, dims, true);
    return sum(distance * distance, dims, true) / std::max(freedom, 0.0);
  });
}

}  // namespace

Tensor var(const Tensor& x, const Dims& given, double correction, bool keepdim) {
  require(is_floating_point(x.dtype()), "std and var only support floating point and complex dtypes");
  const Dims dims = reduced_dims(x, given);
  const double freedom = count_of(x, dims) - correction;
  check_freedom("var", count_of(x, dims), correction);
  return record("VarBackward0", {x}, without_ones(variance(x, dims, freedom), x, dims, keepdim), {x},
                [dims, freedom](const Pass& p) {
                  const Tensor in = p.saved(0);
                  return with_ones(p.g(), in.shape(), dims) * (2.0 / freedom) * (in - mean(in, dims, true));
                });
}

Tensor std(const Tensor& x, const Dims& given, double correction, bool keepdim) {
  require(is_floating_point(x.dtype()), "std and var only support floating point and complex dtypes");
  const Dims dims = reduced_dims(x, given);
  const double freedom = count_of(x, dims) - correction;
  check_freedom("std", count_of(x, dims), correction);
  const Tensor y = without_ones(without_record([&] { return sqrt(variance(x, dims, freedom)); }), x, dims, keepdim);
  return record("StdBackward0", {x}, y, {x, y}, [dims, freedom](const Pass& p) {
    const Tensor in = p.saved(0);
    const Tensor deviation = p.saved(1);
    const Tensor scaled = where(eq(deviation, 0.0), 0.0, p.g() / (deviation * freedom));
    return with_ones(scaled, in.shape(), dims) * (in - mean(in, dims, true));
  });
}

Tensor logsumexp(const Tensor& x, const Dims& given, bool keepdim) {
  const Dims dims = reduced_dims(x, given);
  const bool rows =
      x.dtype() == DType::kFloat32 && dims == Dims{x.ndim() - 1} && x.numel() != 0 && !x.is_meta() && !is_on_device(x);
  const Tensor kept = without_record([&] {
    if (rows) return kernels::logsumexp(x.detach().contiguous());
    if (x.numel() == 0) return log(sum(exp(x), dims, true));
    const Tensor largest = amax(x, dims, true);
    const Tensor shift = where(isfinite(largest), largest, 0.0);
    return log(sum(exp(x - shift), dims, true)) + shift;
  });
  const Tensor y = without_ones(kept, x, dims, keepdim);
  return record("LogsumexpBackward0", {x}, y, {x, y}, [dims, rows](const Pass& p) {
    const Tensor in = p.saved(0);
    if (rows && !grad_enabled())
      return kernels::logsumexp_backward(p.g().contiguous(), in.detach().contiguous(), p.saved(1).contiguous());
    return with_ones(p.g(), in.shape(), dims) * exp(in - with_ones(p.saved(1), in.shape(), dims));
  });
}

namespace {

Tensor norm_of(const Tensor& x, double p, const Dims& dims) {
  if (p == 2.0) return sqrt(sum(x * x, dims, true));
  if (p == 1.0) return sum(abs(x), dims, true);
  if (p == 0.0) return sum(ne(x, 0.0), dims, true).to(x.dtype());
  if (std::isinf(p)) return p > 0 ? amax(abs(x), dims, true) : amin(abs(x), dims, true);
  return pow(sum(pow(abs(x), p), dims, true), 1.0 / p);
}

// d norm / dx. Where the norm is 0 so is this.
Tensor norm_slope(const Tensor& x, const Tensor& y, double p, const Dims& dims) {
  if (p == 0.0) return Tensor::zeros(x.shape(), x.options());
  if (p == 1.0) return sign(x);
  if (p == 2.0) return x * where(eq(y, 0.0), 0.0, 1.0 / y);
  if (std::isinf(p)) {
    const Tensor hit = eq(abs(x), y).to(x.dtype());
    return sign(x) * (hit / sum(hit, dims, true));
  }
  const Tensor zero = p < 2.0 ? eq(x, 0.0) : eq(y, 0.0);
  return where(zero, 0.0, sign(x) * pow(abs(x), p - 1.0) / pow(y, p - 1.0));
}

}  // namespace

Tensor norm(const Tensor& x, double p, const Dims& given, bool keepdim) {
  require(is_floating_point(x.dtype()),
          "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}", x.dtype());
  const Dims dims = reduced_dims(x, given);
  const Tensor y = without_ones(without_record([&] { return norm_of(x, p, dims); }), x, dims, keepdim);
  return record("LinalgVectorNormBackward0", {x}, y, {x, y}, [p, dims](const Pass& pass) {
    const Tensor in = pass.saved(0);
    return with_ones(pass.g(), in.shape(), dims) * norm_slope(in, with_ones(pass.saved(1), in.shape(), dims), p, dims);
  });
}

namespace {

Tensor extreme(std::string_view name, ReduceOp op, const Tensor& x, const Dims& dims, bool keepdim) {
  require(
      count_of(x, dims) > 0.0,
      "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
      "argument.",
      op == ReduceOp::kMax ? "max" : "min");
  const Tensor y = without_ones(kernels::reduce_keepdim(op, x, dims, x.dtype()), x, dims, keepdim);
  return record(name, {x}, y, {x, y}, [dims](const Pass& p) {
    const Tensor in = p.saved(0);
    const Tensor hit = eq(in, with_ones(p.saved(1), in.shape(), dims)).to(in.dtype());
    return hit * (with_ones(p.g(), in.shape(), dims) / sum(hit, dims, true));
  });
}

ValuesAndIndices extreme_along(std::string_view name, bool largest, const Tensor& x, int dim, bool keepdim) {
  const int along = wrap_dim(dim, x.ndim());
  const Dims dims = x.ndim() == 0 ? Dims() : Dims{along};
  require<IndexError>(count_of(x, dims) > 0.0, "{}(): Expected reduction dim {} to have non-zero size.",
                      largest ? "max" : "min", dim);
  const Tensor at = kernels::arg_extreme(x, along, largest);
  const Tensor kept = without_record([&] { return x.ndim() == 0 ? x.clone() : gather(x, along, at); });
  const Tensor indices = without_ones(at, x, dims, keepdim);
  const Tensor values =
      record(name, {x}, without_ones(kept, x, dims, keepdim), {at}, [shape = x.shape(), along, dims](const Pass& p) {
        Tensor g = with_ones(p.g(), shape, dims);
        if (shape.empty()) return g;
        return scatter_add(Tensor::zeros(shape, g.options()), along, p.saved(0), g);
      });
  return {values, indices};
}

Tensor arg_of(const Tensor& x, std::optional<int> dim, bool keepdim, bool largest) {
  require<IndexError>(x.numel() > 0 || (dim && x.size(*dim) > 0),
                      "{}(): Expected reduction dim to be specified for input.numel() == 0.",
                      largest ? "argmax" : "argmin");
  if (!dim) {
    const Tensor at = kernels::arg_extreme(x.detach().reshape({x.numel()}), 0, largest);
    return alias(at, 0, keepdim ? Shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1)) : Shape(),
                 keepdim ? Strides(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1)) : Strides());
  }
  const int along = wrap_dim(*dim, x.ndim());
  return without_ones(kernels::arg_extreme(x.detach(), along, largest), x, x.ndim() == 0 ? Dims() : Dims{along},
                      keepdim);
}

Tensor tested(ReduceOp op, const Tensor& x, const Dims& dims, bool keepdim) {
  return without_ones(kernels::reduce_keepdim(op, x.detach(), dims, DType::kBool), x, dims, keepdim);
}

}  // namespace

Tensor max(const Tensor& x) { return extreme("MaxBackward1", ReduceOp::kMax, x, reduced_dims(x, {}), false); }
Tensor min(const Tensor& x) { return extreme("MinBackward1", ReduceOp::kMin, x, reduced_dims(x, {}), false); }
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("AmaxBackward0", ReduceOp::kMax, x, reduced_dims(x, dims), keepdim);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("AminBackward0", ReduceOp::kMin, x, reduced_dims(x, dims), keepdim);
}
ValuesAndIndices max(const Tensor& x, int dim, bool keepdim) {
  return extreme_along("MaxBackward0", true, x, dim, keepdim);
}
ValuesAndIndices min(const Tensor& x, int dim, bool keepdim) {
  return extreme_along("MinBackward0", false, x, dim, keepdim);
}
Tensor argmax(const Tensor& x, std::optional<int> dim, bool keepdim) { return arg_of(x, dim, keepdim, true); }
Tensor argmin(const Tensor& x, std::optional<int> dim, bool keepdim) { return arg_of(x, dim, keepdim, false); }

Tensor any(const Tensor& x) { return tested(ReduceOp::kAny, x, reduced_dims(x, {}), false); }
Tensor any(const Tensor& x, int dim, bool keepdim) {
  return tested(ReduceOp::kAny, x, reduced_dims(x, {dim}), keepdim);
}
Tensor all(const Tensor& x) { return tested(ReduceOp::kAll, x, reduced_dims(x, {}), false); }
Tensor all(const Tensor& x, int dim, bool keepdim) {
  return tested(ReduceOp::kAll, x, reduced_dims(x, {dim}), keepdim);
}
Tensor count_nonzero(const Tensor& x) { return sum(ne(x.detach(), 0)); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int added = x.ndim() - shape.ndim();
  Dims dims;
  for (int dim = 0; dim < x.ndim(); ++dim) {
    if (dim < added || (shape[dim - added] == 1 && x.shape()[dim] != 1)) dims.push_back(dim);
  }
  return dims.empty() ? x.view(shape) : sum(x, dims, true).view(shape);
}

}  // namespace infeed

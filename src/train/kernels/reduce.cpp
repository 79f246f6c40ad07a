#include "train/kernels/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "infeed/base/error.h"
#include "train/kernels/copy.h"
#include "train/kernels/loop.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {
namespace {

constexpr std::int64_t kRows = 1024;  // rows, or elements * 1/32, of one partial sum

template <class T>
bool is_nan(T value) noexcept {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <class T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

// Sum of a dense range, in eight lanes.
template <class T>
Sum<T> sum_range(const T* values, std::int64_t n) {
  Sum<T> lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) lanes[k] += static_cast<Sum<T>>(values[i + k]);
  }
  Sum<T> total = 0;
  for (; i < n; ++i) total += static_cast<Sum<T>>(values[i]);
  for (const Sum<T> lane : lanes) total += lane;
  return total;
}

// x as [rows, columns], dense. Sums each row.
template <class T>
void sum_inner(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  if (rows > 1 || columns < kGrain) {
    parallel_for(rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(columns, 1)),
                 [=](auto first, auto last) {
                   for (auto row = first; row < last; ++row)
                     out[row] = static_cast<T>(sum_range(x + row * columns, columns));
                 });
    return;
  }
  const std::int64_t chunk = kRows * 32;
  std::vector<Sum<T>> partial(static_cast<std::size_t>((columns + chunk - 1) / chunk));
  parallel_chunks(static_cast<std::int64_t>(partial.size()), [&](std::int64_t i) {
    partial[static_cast<std::size_t>(i)] = sum_range(x + i * chunk, std::min(chunk, columns - i * chunk));
  });
  Sum<T> total = 0;
  for (const Sum<T> value : partial) total += value;
  *out = static_cast<T>(total);
}

// x as [rows, columns], dense. Sums each column: kRows rows at a time, then the partial sums in order.
template <class T>
void sum_outer(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t chunks = (rows + kRows - 1) / kRows;
  std::vector<T> partial(static_cast<std::size_t>(chunks * columns));
  const auto sum_chunk = [&](std::int64_t i) {
    T* const to = partial.data() + i * columns;
    for (std::int64_t row = i * kRows; row < std::min(rows, (i + 1) * kRows); ++row) {
      for (std::int64_t c = 0; c < columns; ++c) to[c] += x[row * columns + c];
    }
  };
  if (rows * columns < kGrain) {
    for (std::int64_t i = 0; i < chunks; ++i) sum_chunk(i);
  } else {
    parallel_chunks(chunks, sum_chunk);
  }
  std::fill(out, out + columns, T{0});
  for (std::int64_t i = 0; i < chunks; ++i) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] += partial[static_cast<std::size_t>(i * columns + c)];
  }
}

bool contains(const Dims& dims, int dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

// Kept dimensions first or last, whichever avoids a copy: out becomes [kept] in the order of `order`.
struct Plan {
  Dims order;      // permutation of x's dimensions
  bool kept_last;  // columns are kept
  std::int64_t kept = 1;
  std::int64_t reduced = 1;
};

Plan plan_for(const Tensor& x, const Dims& dims) {
  Plan plan{{}, false};
  int innermost = 0;
  for (int dim = 1; dim < x.ndim(); ++dim) {
    const bool better =
        x.shape()[innermost] == 1 || (x.shape()[dim] != 1 && x.strides()[dim] <= x.strides()[innermost]);
    if (better) innermost = dim;
  }
  plan.kept_last = !contains(dims, innermost);
  for (const bool kept : {!plan.kept_last, plan.kept_last}) {
    for (int dim = 0; dim < x.ndim(); ++dim) {
      if (contains(dims, dim) == kept) continue;
      plan.order.push_back(dim);
      (kept ? plan.kept : plan.reduced) *= x.shape()[dim];
    }
  }
  return plan;
}

Tensor permuted(const Tensor& x, const Dims& order) {
  Shape shape;
  Strides strides;
  for (const std::int64_t dim : order) {
    shape.push_back(x.shape()[static_cast<int>(dim)]);
    strides.push_back(x.strides()[static_cast<int>(dim)]);
  }
  return alias(x, 0, shape, strides);
}

// Integers and bool are summed as int64.
Tensor to_summable(const Tensor& x) {
  if (x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64 || x.dtype() == DType::kInt64) return x.detach();
  if (x.dtype() == DType::kFloat16 || x.dtype() == DType::kBFloat16)
    throw ConfigError(
        fmt::format("sum: dtype {} is not supported, convert with to(DType::kFloat32).", to_string(x.dtype())));
  return x.detach().to(DType::kInt64);
}

template <class F>
void with_summable(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(float{});
  if (dtype == DType::kFloat64) return f(double{});
  return f(std::int64_t{});
}

}  // namespace

Tensor sum_keepdim(const Tensor& x, const Dims& dims) {
  const Tensor values = to_summable(x);
  Shape shape = x.shape();
  for (const std::int64_t dim : dims) shape[static_cast<int>(dim)] = 1;
  Tensor out = Tensor::empty(shape, values.dtype());
  const Plan plan = plan_for(values, dims);
  Tensor source = permuted(values, plan.order);
  // A dense tensor summed as a whole needs no order.
  const bool whole = plan.kept == 1 && is_dense(values.shape(), values.strides());
  if (!whole) source = source.contiguous();
  with_summable(values.dtype(), [&]<class T>(T) {
    plan.kept_last && !whole ? sum_outer(out.data<T>(), source.data<T>(), plan.reduced, plan.kept)
                             : sum_inner(out.data<T>(), source.data<T>(), plan.kept, plan.reduced);
  });
  return out;
}

std::int64_t argmax_all(const Tensor& x) { return argmax(x.detach().reshape({x.numel()}), 0).item<std::int64_t>(); }

Tensor argmax(const Tensor& x, int dim) {
  const std::int64_t n = x.shape()[dim];
  if (n == 0) throw ConfigError(fmt::format("argmax: dimension {} of shape {} is empty.", dim, x.shape().str()));
  const Tensor rows = x.detach().transpose(dim, -1).contiguous();
  Tensor out = Tensor::empty(Shape(rows.shape().span().first(static_cast<std::size_t>(x.ndim() - 1))), DType::kInt64);
  with_summable(x.dtype(), [&]<class T>(T) {
    const T* values = rows.data<T>();
    auto* index = out.data<std::int64_t>();
    parallel_for(out.numel(), std::max<std::int64_t>(1, kGrain / n), [=](auto first, auto last) {
      const auto less = [](T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); };
      for (auto row = first; row < last; ++row)
        index[row] = std::max_element(values + row * n, values + (row + 1) * n, less) - (values + row * n);
    });
  });
  // transpose(dim, last) put the last dimension at `dim`: move it back behind the others.
  if (dim == x.ndim() - 1) return out;
  Dims order;
  for (int i = 0; i < x.ndim() - 1; ++i) {
    if (i != dim) order.push_back(i);
  }
  order.push_back(dim);
  return out.permute(order).contiguous();
}

}  // namespace infeed::kernels

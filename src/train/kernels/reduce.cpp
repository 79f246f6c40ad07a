#include "train/kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "train/kernels/convert.h"
#include "train/kernels/copy.h"
#include "train/kernels/loop.h"
#include "train/kernels/on_device.h"
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

// The type in which it is summed. On a device bools are counted in float32, exact below 2^24.
Tensor to_summable(const Tensor& x) {
  const bool counted = x.dtype() == DType::kBool && is_on_device(x);
  const DType dtype = x.dtype() == DType::kFloat64              ? DType::kFloat64
                      : is_floating_point(x.dtype()) || counted ? DType::kFloat32
                                                                : DType::kInt64;
  return x.detach().to(dtype);
}

Shape kept_shape(const Tensor& x, const Dims& dims) {
  Shape shape = x.shape();
  for (const std::int64_t dim : dims) shape[static_cast<int>(dim)] = 1;
  return shape;
}

// x as dense rows [kept, reduced] of its type of computation.
Tensor rows_of(const Tensor& x, const Dims& dims) {
  Dims order;
  for (const bool reduced : {false, true}) {
    for (int dim = 0; dim < x.ndim(); ++dim) {
      if (contains(dims, dim) == reduced) order.push_back(dim);
    }
  }
  return permuted(to_summable(x), order).contiguous();
}

template <class T>
T extreme_of(const T* row, std::int64_t n, bool largest) {
  T best = row[0];
  for (std::int64_t i = 1; i < n; ++i) {
    const bool better = is_nan(row[i]) || (largest ? row[i] > best : row[i] < best);
    if (better && !is_nan(best)) best = row[i];
  }
  return best;
}

template <class T>
T reduce_row(ReduceOp op, const T* row, std::int64_t n) {
  T result = op == ReduceOp::kProd || op == ReduceOp::kAll ? 1 : 0;
  switch (op) {
    case ReduceOp::kProd:
      for (std::int64_t i = 0; i < n; ++i) result *= row[i];
      return result;
    case ReduceOp::kMax: return extreme_of(row, n, true);
    case ReduceOp::kMin: return extreme_of(row, n, false);
    case ReduceOp::kAny: return std::any_of(row, row + n, [](T v) { return v != 0; });
    case ReduceOp::kAll: return std::all_of(row, row + n, [](T v) { return v != 0; });
  }
  return result;
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProd: return "prod";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kAny: return "any";
    case ReduceOp::kAll: return "all";
  }
  return "a reduction";
}

// Calls f(row number) for each of `rows` of `n` elements, on several threads.
template <class F>
void each_row(std::int64_t rows, std::int64_t n, F&& f) {
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(n, 1)), [&](auto first, auto last) {
    for (auto row = first; row < last; ++row) f(row);
  });
}

}  // namespace

Tensor sum_keepdim(const Tensor& x, const Dims& dims) {
  const Tensor values = to_summable(x);
  Tensor out = Tensor::empty(kept_shape(x, dims), values.options());
  if (x.is_meta()) return out;
  const Plan plan = plan_for(values, dims);
  Tensor source = permuted(values, plan.order);
  // A dense tensor summed as a whole needs no order.
  const bool whole = plan.kept == 1 && is_dense(values.shape(), values.strides());
  if (!whole) source = source.contiguous();
  if (is_on_device(x)) {
    plan.kept_last && !whole ? on_device::sum_columns(out, source, {plan.reduced, plan.kept})
                             : on_device::reduce_rows(INFEED_REDUCE_SUM, out, source, {plan.kept, plan.reduced});
    return out;
  }
  with_compute(values.dtype(), [&]<class T>(T) {
    plan.kept_last && !whole ? sum_outer(out.data<T>(), source.data<T>(), plan.reduced, plan.kept)
                             : sum_inner(out.data<T>(), source.data<T>(), plan.kept, plan.reduced);
  });
  return out;
}

Tensor reduce_keepdim(ReduceOp op, const Tensor& x, const Dims& dims, DType dtype) {
  const Tensor rows = rows_of(x, dims);
  Tensor out = Tensor::empty(kept_shape(x, dims), rows.options());
  if (x.is_meta() || out.numel() == 0) return out.to(dtype);
  const std::int64_t n = x.numel() / out.numel();
  const bool largest = op == ReduceOp::kMax || (op == ReduceOp::kAny && x.dtype() == DType::kBool);
  const bool smallest = op == ReduceOp::kMin || (op == ReduceOp::kAll && x.dtype() == DType::kBool);
  if (is_on_device(x) && (largest || smallest)) {
    on_device::reduce_rows(largest ? INFEED_REDUCE_MAX : INFEED_REDUCE_MIN, out, rows, {out.numel(), n});
    return out.to(dtype);
  }
  with_compute(rows.dtype(), [&]<class T>(T) {
    each_row(out.numel(), n, [&, to = out.data<T>(name_of(op)), from = rows.data<T>()](std::int64_t row) {
      to[row] = reduce_row(op, from + row * n, n);
    });
  });
  return out.to(dtype);
}

Tensor arg_extreme(const Tensor& x, int dim, bool largest) {
  const Dims dims = x.ndim() == 0 ? Dims() : Dims{dim};
  Tensor out = Tensor::empty(kept_shape(x, dims), TensorOptions(DType::kInt64, x.device()));
  if (x.is_meta() || out.numel() == 0) return out;
  const Tensor rows = rows_of(x, dims);
  const std::int64_t n = x.numel() / out.numel();
  if (is_on_device(x) && largest) {
    on_device::argmax_rows(out, rows, {out.numel(), n});
    return out;
  }
  with_compute(rows.dtype(), [&]<class T>(T) {
    each_row(out.numel(), n,
             [&, to = out.data<std::int64_t>(largest ? "argmax" : "argmin"), from = rows.data<T>()](std::int64_t row) {
               const T* const values = from + row * n;
               std::int64_t best = 0;
               for (std::int64_t i = 1; i < n && !is_nan(values[best]); ++i) {
                 if (is_nan(values[i]) || (largest ? values[i] > values[best] : values[i] < values[best])) best = i;
               }
               to[row] = best;
             });
  });
  return out;
}

void cumsum(const Tensor& out, const Tensor& x, int dim) {
  if (x.is_meta() || x.numel() == 0) return;
  if (x.ndim() == 0) return copy(out, x);
  const Tensor lines = to_summable(x).transpose(dim, -1).contiguous();
  const Tensor sums = Tensor::empty(lines.shape(), lines.options());
  const std::int64_t n = lines.size(-1);
  with_compute(lines.dtype(), [&]<class T>(T) {
    each_row(lines.numel() / n, n, [&, to = sums.data<T>("cumsum"), from = lines.data<T>()](std::int64_t row) {
      Sum<T> total = 0;
      for (std::int64_t i = row * n; i < (row + 1) * n; ++i)
        to[i] = static_cast<T>(total += static_cast<Sum<T>>(from[i]));
    });
  });
  copy(out, sums.transpose(dim, -1));
}

}  // namespace infeed::kernels

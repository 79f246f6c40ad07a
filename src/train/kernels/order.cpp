#include "train/kernels/order.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "train/kernels/convert.h"
#include "train/kernels/copy.h"
#include "train/kernels/parallel.h"
#include "train/tensor/check.h"

namespace infeed::kernels {
namespace {

template <class T>
bool is_nan(T value) noexcept {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// inner[r] == r: rows are moved whole.
bool is_run(std::span<const std::int64_t> inner) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

template <class T>
void add_to(T& place, T value) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    place = place || value;
  else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    place = narrow<T>(widen<float>(place) + widen<float>(value));
  else
    place = static_cast<T>(place + value);
}

// Sums of small floats are kept in float32 and rounded once, as in all reductions.
bool sums_widely(const Tensor& x, PutMode mode) {
  return mode == PutMode::kAdd && x.is_contiguous() && (x.dtype() == DType::kFloat16 || x.dtype() == DType::kBFloat16);
}

}  // namespace

Tensor sorted_indices(const Tensor& x, int dim, std::int64_t k, bool descending) {
  const std::int64_t n = x.size(dim);
  Shape shape = x.shape();
  shape[dim] = k;
  if (x.is_meta() || shape.numel() == 0) return Tensor::empty(shape, TensorOptions(DType::kInt64, x.device()));
  const DType wide = x.dtype() == DType::kFloat64   ? DType::kFloat64
                     : is_floating_point(x.dtype()) ? DType::kFloat32
                                                    : DType::kInt64;
  const Tensor rows = x.detach().to(wide).transpose(dim, -1).contiguous();
  Shape taken = rows.shape();
  taken[x.ndim() - 1] = k;
  const Tensor out = Tensor::empty(taken, TensorOptions(DType::kInt64, x.device()));
  with_compute(wide, [&]<class T>(T) {
    parallel_for(rows.numel() / n, std::max<std::int64_t>(1, kGrain / 16 / n), [&](auto first, auto last) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      for (auto row = first; row < last; ++row) {
        const T* const values = rows.data<T>("sort") + row * n;
        const auto less = [values](std::int64_t a, std::int64_t b) {
          return values[a] < values[b] || (is_nan(values[b]) && !is_nan(values[a]));
        };
        std::iota(order.begin(), order.end(), std::int64_t{0});
        const auto before = [&](std::int64_t a, std::int64_t b) {
          if (descending ? less(b, a) : less(a, b)) return true;
          return !(descending ? less(a, b) : less(b, a)) && a < b;
        };
        if (k == n)
          std::sort(order.begin(), order.end(), before);
        else
          std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
        std::copy(order.begin(), order.begin() + k, out.data<std::int64_t>() + row * k);
      }
    });
  });
  return out.transpose(dim, -1).contiguous();
}

std::vector<std::int64_t> offsets_of(const Shape& shape, const Strides& strides) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(shape.numel()));
  std::size_t filled = offsets.empty() ? 0 : 1;  // offsets of the dimensions so far, repeated for the next one
  if (!offsets.empty()) offsets[0] = 0;
  for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
    const std::size_t block = filled;
    for (std::int64_t i = 1; i < shape[dim] && !offsets.empty(); ++i) {
      for (std::size_t k = 0; k < block; ++k) offsets[filled + k] = offsets[k] + i * strides[dim];
      filled += block;
    }
  }
  return offsets;
}

void take(const Tensor& out, const Tensor& x, std::span<const std::int64_t> places,
          std::span<const std::int64_t> inner) {
  if (out.is_meta() || out.numel() == 0) return;
  const auto size = itemsize(x.dtype());
  const auto n = static_cast<std::int64_t>(inner.size());
  const std::byte* const from = x.data_ptr();
  std::byte* const to = out.data_ptr();
  const bool run = is_run(inner);
  parallel_for(
      static_cast<std::int64_t>(places.size()), std::max<std::int64_t>(1, kGrain / n), [&](auto first, auto last) {
        for (auto i = first; i < last; ++i) {
          const std::byte* const row = from + places[static_cast<std::size_t>(i)] * static_cast<std::int64_t>(size);
          std::byte* const target = to + i * n * static_cast<std::int64_t>(size);
          if (run) {
            std::memcpy(target, row, inner.size() * size);
            continue;
          }
          for (std::size_t r = 0; r < inner.size(); ++r)
            std::memcpy(target + r * size, row + inner[r] * static_cast<std::int64_t>(size), size);
        }
      });
}

void put(const Tensor& x, std::span<const std::int64_t> places, std::span<const std::int64_t> inner,
         const Tensor& values, PutMode mode) {
  if (x.is_meta() || values.numel() == 0) return;
  if (sums_widely(x, mode)) {
    const Tensor wide = x.detach().to(DType::kFloat32);
    put(wide, places, inner, values.to(DType::kFloat32), mode);
    return copy(x, wide);
  }
  with_dtype(x.dtype(), [&]<class T>(T) {
    T* const to = reinterpret_cast<T*>(x.data_ptr());
    const T* from = reinterpret_cast<const T*>(values.data_ptr());
    for (const std::int64_t place : places) {
      for (const std::int64_t offset : inner) {
        T& target = to[place + offset];
        if (mode == PutMode::kSet)
          target = *from++;
        else
          add_to(target, *from++);
      }
    }
  });
}

}  // namespace infeed::kernels

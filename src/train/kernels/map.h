#pragma once
/// The one elementwise loop.

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "train/kernels/convert.h"
#include "train/kernels/loop.h"
#include "train/kernels/vector_math.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {

/// Numbers of an operation, in the type it is computed in.
template <class C>
struct Params {
  C a, b;
};

/// out[i] = f(in[0][i], ...) for dense arrays.
template <class C, std::size_t N>
using Block = void (*)(C* out, const std::array<const C*, N>& in, std::int64_t n, const Params<C>& params);

template <class C, std::size_t N, class F, std::size_t... K>
[[gnu::always_inline]] inline void apply(C* out, const std::array<const C*, N>& in, std::int64_t n,
                                         const Params<C>& params, std::index_sequence<K...>) {
  const std::array<const C*, N> from = in;
  const Params<C> p = params;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_invocable_v<F, decltype(from[K][i])..., const Params<C>&>)
      out[i] = static_cast<C>(F{}(from[K][i]..., p));
    else
      out[i] = static_cast<C>(F{}(from[K][i]...));
  }
}

template <class F>
INFEED_CLONES void float_block1(float* out, const std::array<const float*, 1>& in, std::int64_t n,
                                const Params<float>& p) {
  apply<float, 1, F>(out, in, n, p, std::make_index_sequence<1>());
}
template <class F>
INFEED_CLONES void float_block2(float* out, const std::array<const float*, 2>& in, std::int64_t n,
                                const Params<float>& p) {
  apply<float, 2, F>(out, in, n, p, std::make_index_sequence<2>());
}

/// The block of a function without state, which takes N values and, if it wants them, the parameters.
template <class C, std::size_t N, class F>
Block<C, N> block_of(F) {
  if constexpr (std::is_same_v<C, float> && N == 1) return &float_block1<F>;
  if constexpr (std::is_same_v<C, float> && N == 2) return &float_block2<F>;
  return [](C* out, const std::array<const C*, N>& in, std::int64_t n, const Params<C>& params) {
    apply<C, N, F>(out, in, n, params, std::make_index_sequence<N>());
  };
}

inline constexpr std::int64_t kBlock = 512;  // elements through buffers on the stack at a time

/// True if strides do not matter: all are computed in their own type and lie dense in one layout, or are numbers.
template <class C, std::size_t N>
bool is_one_run(const Tensor& out, const std::array<const Tensor*, N>& in) {
  const TensorImpl& to = out.impl();
  const auto fits = [&to](const Tensor* operand) {
    const TensorImpl& x = operand->impl();
    return x.shape.empty() || (x.dtype == to.dtype && x.strides == to.strides && x.shape == to.shape);
  };
  return to.dtype == dtype_of<C> && !to.shape.empty() && to.storage->data() != nullptr &&
         std::all_of(in.begin(), in.end(), fits) && is_dense(to.shape, to.strides);
}

template <class C, std::size_t N>
void map_one_run(const Tensor& out, const std::array<const Tensor*, N>& in, Block<C, N> block,
                 const Params<C>& params) {
  const std::int64_t numel = out.numel();
  std::int64_t step = numel;
  alignas(64) C numbers[N][kBlock];
  std::array<const C*, N> from;
  for (std::size_t k = 0; k < N; ++k) {
    from[k] = in[k]->ndim() == 0 ? nullptr : reinterpret_cast<const C*>(in[k]->data_ptr());
    if (from[k] != nullptr) continue;
    step = std::min(numel, kBlock);
    loader<C>(in[k]->dtype())(numbers[k], in[k]->data_ptr(), 0, step);
  }
  C* const to = reinterpret_cast<C*>(out.data_ptr());
  parallel_for(numel, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += step) {
      std::array<const C*, N> piece;
      for (std::size_t k = 0; k < N; ++k) piece[k] = from[k] == nullptr ? numbers[k] : from[k] + i;
      block(to + i, piece, std::min(step, last - i), params);
    }
  });
}

/// How the operands of other dtypes come and go; null for those of C.
template <class C, std::size_t N>
struct Conversions {
  std::array<Load<C>, N> load{};
  Store<C> store = nullptr;
};

/// One run of elements: in place where it lies dense in C, else through buffers.
template <class C, std::size_t N>
void map_run(const Run<static_cast<int>(N) + 1>& run, const Conversions<C, N>& convert, Block<C, N> block,
             const Params<C>& params) {
  constexpr std::int64_t kDense = sizeof(C);
  const bool out_direct = convert.store == nullptr && run.stride[0] == kDense;
  std::array<bool, N> direct;
  bool all_direct = out_direct;
  for (std::size_t k = 0; k < N; ++k)
    all_direct &= direct[k] = convert.load[k] == nullptr && run.stride[k + 1] == kDense;
  std::array<const C*, N> from;
  for (std::size_t k = 0; k < N; ++k) from[k] = reinterpret_cast<const C*>(run.data[k + 1]);
  if (all_direct) return block(reinterpret_cast<C*>(run.data[0]), from, run.count, params);

  alignas(64) C buffers[N + 1][kBlock];
  const auto read = [&](std::size_t k, std::int64_t first, std::int64_t n) {
    const Load<C> load = convert.load[k] != nullptr ? convert.load[k] : loader<C>(dtype_of<C>);
    load(buffers[k], run.data[k + 1] + first * run.stride[k + 1], run.stride[k + 1], n);
  };
  const Store<C> store = convert.store != nullptr ? convert.store : storer<C>(dtype_of<C>);
  for (std::size_t k = 0; k < N; ++k) {
    if (!direct[k]) from[k] = buffers[k];
    if (run.stride[k + 1] == 0) read(k, 0, std::min(kBlock, run.count));  // a repeated value: once
  }
  for (std::int64_t first = 0; first < run.count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, run.count - first);
    for (std::size_t k = 0; k < N; ++k) {
      if (direct[k])
        from[k] = reinterpret_cast<const C*>(run.data[k + 1]) + first;
      else if (run.stride[k + 1] != 0)
        read(k, first, n);
    }
    block(out_direct ? reinterpret_cast<C*>(run.data[0]) + first : buffers[N], from, n, params);
    if (!out_direct) store(run.data[0] + first * run.stride[0], run.stride[0], buffers[N], n);
  }
}

/// Runs `block` over `out` and the inputs broadcast to it.
template <class C, std::size_t N>
void map(const Tensor& out, const std::array<const Tensor*, N>& in, Block<C, N> block, const Params<C>& params) {
  if (is_one_run<C, N>(out, in)) return map_one_run<C, N>(out, in, block, params);
  constexpr int kAll = static_cast<int>(N) + 1;
  std::array<const Tensor*, N + 1> tensors{&out};
  std::array<Strides, N + 1> strides{out.strides()};
  Conversions<C, N> convert;
  for (std::size_t k = 0; k < N; ++k) {
    tensors[k + 1] = in[k];
    strides[k + 1] = broadcast_strides(in[k]->shape(), in[k]->strides(), out.shape());
    if (in[k]->dtype() != dtype_of<C>) convert.load[k] = loader<C>(in[k]->dtype());
  }
  if (out.dtype() != dtype_of<C>) convert.store = storer<C>(out.dtype());
  Loop<kAll>(out.shape(), tensors, strides).run([&](const Run<kAll>& run) { map_run(run, convert, block, params); });
}

}  // namespace infeed::kernels

#pragma once
/// Walks up to four tensors of one shape together, whatever their strides.

#include <algorithm>
#include <array>
#include <cstdint>

#include "infeed/train/tensor/tensor.h"
#include "train/kernels/parallel.h"

namespace infeed::kernels {

/// Pointers and byte strides of one inner run.
template <int N>
struct Run {
  std::array<std::byte*, N> data;
  std::array<std::int64_t, N> stride;
  std::int64_t count;
};

/// Dimensions are reordered so that the first operand's smallest stride is innermost, and joined where all operands
/// allow it: dense tensors of one layout become a single run.
template <int N>
class LoopGeometry {
 public:
  LoopGeometry(const Shape& shape, const std::array<const Tensor*, N>& operands,
               const std::array<Strides, N>& strides) {
    numel_ = shape.numel();
    for (const int dim : inner_first(shape, strides[0])) {
      if (dim < 0) break;
      std::array<std::int64_t, N> bytes{};
      for (int k = 0; k < N; ++k)
        bytes[at(k)] = strides[at(k)][dim] * static_cast<std::int64_t>(itemsize(operands[at(k)]->dtype()));
      append(shape[dim], bytes);
    }
    if (ndim_ == 0) append(1, {});
  }

  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
  [[nodiscard]] int ndim() const noexcept { return ndim_; }
  /// Of dimension `dim`, innermost first; strides in bytes.
  [[nodiscard]] std::int64_t size(int dim) const noexcept { return size_[at(dim)]; }
  [[nodiscard]] std::int64_t stride(int dim, int operand) const noexcept { return stride_[at(dim)][at(operand)]; }

 protected:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static std::array<int, kMaxDims> inner_first(const Shape& shape, const Strides& strides) {
    std::array<int, kMaxDims> order{};
    order.fill(-1);
    int count = 0;
    for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
      if (shape[dim] == 1) continue;
      int place = count++;  // insertion keeps equal strides in order
      for (; place > 0 && strides[order[at(place - 1)]] > strides[dim]; --place)
        order[at(place)] = order[at(place - 1)];
      order[at(place)] = dim;
    }
    return order;
  }

  void append(std::int64_t size, const std::array<std::int64_t, N>& bytes) {
    if (ndim_ > 0) {
      bool joins = true;
      for (int k = 0; k < N; ++k) joins = joins && bytes[at(k)] == stride_[at(ndim_ - 1)][at(k)] * size_[at(ndim_ - 1)];
      if (joins) {
        size_[at(ndim_ - 1)] *= size;
        return;
      }
    }
    size_[at(ndim_)] = size;
    stride_[at(ndim_++)] = bytes;
  }

  std::array<std::int64_t, kMaxDims> size_{};                   // inner first
  std::array<std::array<std::int64_t, N>, kMaxDims> stride_{};  // bytes
  std::int64_t numel_ = 0;
  int ndim_ = 0;
};

/// Such a walk over memory. Where operand 0 is written, it must not repeat elements (stride 0).
template <int N>
class Loop : private LoopGeometry<N> {
 public:
  Loop(const Shape& shape, const std::array<const Tensor*, N>& operands, const std::array<Strides, N>& strides,
       const char* asker = __builtin_FUNCTION())
      : LoopGeometry<N>(shape, operands, strides) {
    for (int k = 0; k < N; ++k) base_[at(k)] = operands[at(k)]->data_ptr(asker);
  }

  /// Calls body(Run<N>) until all elements were visited once; on several threads if `parallel` and worth it.
  template <class Body>
  void run(Body&& body, bool parallel = true) const {
    for (const std::byte* base : base_) {
      if (base == nullptr) return;  // meta: shapes only
    }
    if (numel_ == 0) return;
    parallel_for(numel_, parallel ? kGrain : numel_,
                 [&](std::int64_t first, std::int64_t last) { visit(first, last, body); });
  }

 private:
  using LoopGeometry<N>::at;
  using LoopGeometry<N>::ndim_;
  using LoopGeometry<N>::numel_;
  using LoopGeometry<N>::size_;
  using LoopGeometry<N>::stride_;

  template <class Body>
  void visit(std::int64_t first, std::int64_t last, Body& body) const {
    std::array<std::int64_t, kMaxDims> index{};
    for (std::int64_t rest = first, dim = 0; dim < ndim_; rest /= size_[static_cast<std::size_t>(dim)], ++dim)
      index[static_cast<std::size_t>(dim)] = rest % size_[static_cast<std::size_t>(dim)];
    while (first < last) {
      Run<N> piece{base_, stride_[0], std::min(size_[0] - index[0], last - first)};
      for (int k = 0; k < N; ++k) {
        for (int dim = 0; dim < ndim_; ++dim) piece.data[at(k)] += index[at(dim)] * stride_[at(dim)][at(k)];
      }
      body(piece);
      first += piece.count;
      index[0] = 0;
      for (int dim = 1; dim < ndim_ && ++index[at(dim)] == size_[at(dim)]; ++dim) index[at(dim)] = 0;
    }
  }

  std::array<std::byte*, N> base_{};
};

}  // namespace infeed::kernels

#pragma once
/// One pass over all tensors of a group of parameters: what optimizers run on.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infeed/train/tensor/storage.h"
#include "infeed/train/tensor/tensor.h"
#include "train/kernels/convert.h"
#include "train/kernels/parallel.h"
#include "train/tensor/check.h"
#include "train/tensor/impl.h"

namespace infeed::kernels {

/// `count` neighbouring elements of N tensors, as C (float or double). Null where a row lacks that tensor.
template <class C, std::size_t N>
struct Piece {
  std::array<C*, N> at;
  std::int64_t count;
  std::size_t row;  ///< which parameter
};

/// Tensors of one shape: parameter, gradient, then what the optimizer keeps. Those may be undefined.
template <std::size_t N>
using Row = std::array<Tensor, N>;

/// Throws RuntimeError unless what the optimizer keeps (from a file, say) has the parameter's shape.
template <std::size_t N>
void check_row(const Row<N>& row) {
  for (const Tensor& x : row) {
    if (x.defined())
      require(x.shape() == row[0].shape(),
              "the optimizer's state or gradient has shape {}, its parameter {}: it belongs to another model",
              x.shape(), row[0].shape());
  }
}

/// x itself where its elements lie as `like`'s, else a copy that does.
[[nodiscard]] inline Tensor laid_out_as(const Tensor& like, const Tensor& x) {
  if (!x.defined() || (x.strides() == like.strides() && is_dense(x.shape(), x.strides()))) return x;
  Tensor copy = is_dense(like.shape(), like.strides())
                    ? Tensor::empty_strided(like.shape(), like.strides(), x.options())
                    : Tensor::empty(like.shape(), x.options());
  copy.copy_(x);
  return copy;
}

/// Elements [first, last) of the tensors of one row: what one task does.
struct RowPart {
  std::size_t row;
  std::int64_t first, last;
};

/// Rows whose tensors lie as the row's first one, with their parts.
template <std::size_t N>
struct FlatRows {
  static constexpr std::int64_t kPart = 16384;  // elements
  std::vector<Row<N>> rows;
  std::vector<RowPart> parts;

  explicit FlatRows(std::span<const Row<N>> given) {
    for (const Row<N>& row : given) {
      check_row(row);
      Row<N>& dense = rows.emplace_back();
      for (std::size_t k = 0; k < N; ++k) dense[k] = laid_out_as(row[0], row[k]);
      const std::int64_t numel = row[0].numel();
      for (std::int64_t first = 0; first < numel; first += kPart)
        parts.push_back({rows.size() - 1, first, std::min(first + kPart, numel)});
    }
  }

  /// Takes what was changed, all but element 1, back to where it came from.
  void write_back(std::span<const Row<N>> given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      for (std::size_t k = 0; k < N; ++k) {
        if (k == 1 || !given[i][k].defined()) continue;
        if (rows[i][k].is_same(given[i][k]))
          given[i][k].storage()->bump_version();
        else
          Tensor(given[i][k]).copy_(rows[i][k]);
      }
    }
  }
};

[[nodiscard]] inline std::byte* address_of(const Tensor& x, std::int64_t i) {
  return x.data_ptr() + i * static_cast<std::int64_t>(itemsize(x.dtype()));
}

/// One part through buffers of C, for tensors of other dtypes.
template <class C, std::size_t N, class Body>
void run_buffered(const Row<N>& row, const RowPart& part, Body& body) {
  constexpr std::int64_t kBuffered = 512;  // elements at a time
  alignas(64) C buffers[N][kBuffered];
  Piece<C, N> piece{{}, 0, part.row};
  for (std::size_t k = 0; k < N; ++k) piece.at[k] = row[k].defined() ? buffers[k] : nullptr;
  for (std::int64_t first = part.first; first < part.last; first += kBuffered) {
    piece.count = std::min(kBuffered, part.last - first);
    for (std::size_t k = 0; k < N; ++k) {
      if (!row[k].defined()) continue;
      const DType dtype = row[k].dtype();
      loader<C>(dtype)(buffers[k], address_of(row[k], first), static_cast<std::int64_t>(itemsize(dtype)), piece.count);
    }
    body(piece);
    for (std::size_t k = 0; k < N; ++k) {
      if (!row[k].defined() || k == 1) continue;
      const DType dtype = row[k].dtype();
      storer<C>(dtype)(address_of(row[k], first), static_cast<std::int64_t>(itemsize(dtype)), buffers[k], piece.count);
    }
  }
}

/// One part, in place where all tensors hold C. A function of its own: inlined into the loop over parts, SGD's body is
/// a fifth slower.
template <class C, std::size_t N, class Body>
[[gnu::noinline]] void run_part(const Row<N>& row, const RowPart& part, Body& body) {
  const auto holds = [](const Tensor& x) { return !x.defined() || x.dtype() == dtype_of<C>; };
  if (!std::all_of(row.begin(), row.end(), holds)) return run_buffered<C>(row, part, body);
  Piece<C, N> piece{{}, part.last - part.first, part.row};
  for (std::size_t k = 0; k < N; ++k)
    piece.at[k] = row[k].defined() ? reinterpret_cast<C*>(address_of(row[k], part.first)) : nullptr;
  body(piece);
}

/// Calls body(Piece<float, N>) or body(Piece<double, N>) on pieces of all rows, on several threads; elements of other
/// dtypes pass through buffers of float. All but element 1, the gradient, are written back. Grad mode must be off.
template <std::size_t N, class Body>
void fused(std::span<const Row<N>> rows, Body body, const char* asker = __builtin_FUNCTION()) {
  for (const Row<N>& row : rows) static_cast<void>(row[0].data_ptr(asker));  // all but SGD and Adam: on the host
  const FlatRows<N> flat(rows);
  const auto count = static_cast<std::int64_t>(flat.parts.size());
  const auto work = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const RowPart& part = flat.parts[static_cast<std::size_t>(i)];
      const Row<N>& row = flat.rows[part.row];
      row[0].dtype() == DType::kFloat64 ? run_part<double>(row, part, body) : run_part<float>(row, part, body);
    }
  };
  if (count * FlatRows<N>::kPart < 2 * kGrain)
    work(0, count);
  else
    parallel_for(count, 1, work);
  flat.write_back(rows);
}

}  // namespace infeed::kernels

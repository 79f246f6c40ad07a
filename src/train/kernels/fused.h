#pragma once
/// One pass over all tensors of a group of parameters: what optimizers run on.

#include <algorithm>
#include <array>
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

/// Calls body(Piece<float, N>) or body(Piece<double, N>) on pieces of all rows, on several threads; elements of other
/// dtypes pass through buffers of float. All but element 1, the gradient, are written back. Grad mode must be off.
template <std::size_t N, class Body>
void fused(std::span<const Row<N>> rows, Body body) {
  constexpr std::int64_t kPiece = 16384;   // elements a task
  constexpr std::int64_t kBuffered = 512;  // elements through buffers at a time
  struct Task {
    std::size_t row;
    std::int64_t first, last;
  };
  std::vector<Row<N>> flat;
  std::vector<Task> tasks;
  for (const Row<N>& row : rows) {
    check_row(row);
    Row<N>& dense = flat.emplace_back();
    for (std::size_t k = 0; k < N; ++k) dense[k] = laid_out_as(row[0], row[k]);
    const std::int64_t numel = row[0].numel();
    for (std::int64_t first = 0; first < numel; first += kPiece)
      tasks.push_back({flat.size() - 1, first, std::min(first + kPiece, numel)});
  }
  const auto run = [&]<class C>(const Task& task, C) {
    const Row<N>& row = flat[task.row];
    bool direct = true;
    for (const Tensor& tensor : row) direct = direct && (!tensor.defined() || tensor.dtype() == dtype_of<C>);
    const auto address = [&](std::size_t k, std::int64_t i) {
      return row[k].data_ptr() + i * static_cast<std::int64_t>(itemsize(row[k].dtype()));
    };
    Piece<C, N> piece{{}, task.last - task.first, task.row};
    if (direct) {
      for (std::size_t k = 0; k < N; ++k)
        piece.at[k] = row[k].defined() ? reinterpret_cast<C*>(address(k, task.first)) : nullptr;
      return body(piece);
    }
    alignas(64) C buffers[N][kBuffered];
    for (std::int64_t first = task.first; first < task.last; first += kBuffered) {
      piece.count = std::min(kBuffered, task.last - first);
      for (std::size_t k = 0; k < N; ++k) {
        piece.at[k] = row[k].defined() ? buffers[k] : nullptr;
        if (!row[k].defined()) continue;
        loader<C>(row[k].dtype())(buffers[k], address(k, first), static_cast<std::int64_t>(itemsize(row[k].dtype())),
                                  piece.count);
      }
      body(piece);
      for (std::size_t k = 0; k < N; ++k) {
        if (!row[k].defined() || k == 1) continue;
        storer<C>(row[k].dtype())(address(k, first), static_cast<std::int64_t>(itemsize(row[k].dtype())), buffers[k],
                                  piece.count);
      }
    }
  };
  const auto work = [&](std::int64_t i) {
    const Task& task = tasks[static_cast<std::size_t>(i)];
    flat[task.row][0].dtype() == DType::kFloat64 ? run(task, double{}) : run(task, float{});
  };
  if (tasks.size() * kPiece < 2 * static_cast<std::size_t>(kGrain)) {
    for (std::size_t i = 0; i < tasks.size(); ++i) work(static_cast<std::int64_t>(i));
  } else {
    parallel_for(static_cast<std::int64_t>(tasks.size()), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) work(i);
    });
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < N; ++k) {
      if (k == 1 || !rows[i][k].defined()) continue;
      if (flat[i][k].is_same(rows[i][k]))
        rows[i][k].storage()->bump_version();
      else
        Tensor(rows[i][k]).copy_(flat[i][k]);
    }
  }
}

}  // namespace infeed::kernels

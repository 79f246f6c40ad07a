// Constants are taken in double and rounded once; elements are computed in float, or double for float64.

#include "infeed/train/optim/fused.h"

#include <atomic>
#include <cmath>

#include "infeed/train/autograd/grad_mode.h"
#include "train/kernels/fused.h"
#include "train/optim/on_device.h"

namespace infeed::optim {
namespace {

using kernels::fused;
using kernels::Piece;
using kernels::Row;

template <std::size_t N, class From, class Pick>
std::vector<Row<N>> rows_of(std::span<const From> from, Pick pick) {
  std::vector<Row<N>> rows;
  rows.reserve(from.size());
  for (const From& one : from) rows.push_back(pick(one));
  return rows;
}

// The gradient as the update sees it: turned round to maximize, with weight decay.
template <class C>
struct Direction {
  C sign, decay;
  C operator()(C grad, C param) const noexcept { return sign * grad + decay * param; }
};
template <class C, class Options>
Direction<C> direction(const Options& options, bool decays = true) {
  return {C(options.maximize ? -1 : 1), C(decays ? options.weight_decay : 0.0)};
}

}  // namespace

void sgd_step(std::span<const SgdRow> from, const SGDOptions& o) {
  const auto rows = rows_of<3>(from, [](const SgdRow& r) { return Row<3>{r.param, r.grad, r.momentum_buffer}; });
  if (lies_on_device(rows)) return step_on_device(rows, from, o);
  fused<3>(rows, [&]<class C>(const Piece<C, 3>& piece) {
    const auto [param, grad, buffer] = piece.at;
    const auto directed = direction<C>(o);
    const C lr = C(o.lr), momentum = C(o.momentum), fresh = C(1.0 - o.dampening);
    const bool first = from[piece.row].first, nesterov = o.nesterov;
    if (buffer == nullptr) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < piece.count; ++i) param[i] -= lr * directed(grad[i], param[i]);
      return;
    }
#pragma GCC ivdep
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const C g = directed(grad[i], param[i]);
      const C b = first ? g : momentum * buffer[i] + fresh * g;
      buffer[i] = b;
      param[i] -= lr * (nesterov ? g + momentum * b : b);
    }
  });
}

void adam_step(std::span<const AdamRow> from, const AdamOptions& o) {
  const auto rows = rows_of<5>(from, [](const AdamRow& r) {
    return Row<5>{r.param, r.grad, r.exp_avg, r.exp_avg_sq, r.max_exp_avg_sq};
  });
  if (lies_on_device(rows)) return step_on_device(rows, from, o);
  fused<5>(rows, [&]<class C>(const Piece<C, 5>& piece) {
    C *const param = piece.at[0], *const grad = piece.at[1];
    C *const mean = piece.at[2], *const square = piece.at[3], *const largest = piece.at[4];
    const auto directed = direction<C>(o, !o.decoupled);
    const double step = from[piece.row].step;
    const C keep = C(o.decoupled ? 1.0 - o.lr * o.weight_decay : 1.0);
    const C beta2 = C(o.beta2), fresh1 = C(1.0 - o.beta1), fresh2 = C(1.0 - o.beta2), eps = C(o.eps);
    const C size = C(o.lr / (1.0 - std::pow(o.beta1, step)));
    const C root = C(1.0 / std::sqrt(1.0 - std::pow(o.beta2, step)));
    const auto moments = [&](std::int64_t i, C p) {
      const C g = directed(grad[i], p);
      mean[i] += fresh1 * (g - mean[i]);
      return square[i] = beta2 * square[i] + fresh2 * (g * g);
    };
    const auto move = [&](std::int64_t i, C p, C v) { param[i] = p - size * (mean[i] / (std::sqrt(v) * root + eps)); };
    if (largest == nullptr) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const C p = param[i] * keep;
        move(i, p, moments(i, p));
      }
      return;
    }
#pragma GCC ivdep
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const C p = param[i] * keep;
      const C v = moments(i, p);
      largest[i] = largest[i] > v ? largest[i] : v;
      move(i, p, largest[i]);
    }
  });
}

void adagrad_step(std::span<const AdagradRow> from, const AdagradOptions& o) {
  const auto rows = rows_of<3>(from, [](const AdagradRow& r) { return Row<3>{r.param, r.grad, r.sum}; });
  fused<3>(rows, [&]<class C>(const Piece<C, 3>& piece) {
    const auto [param, grad, sum] = piece.at;
    const auto directed = direction<C>(o);
    const C lr = C(o.lr / (1.0 + (from[piece.row].step - 1.0) * o.lr_decay)), eps = C(o.eps);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const C g = directed(grad[i], param[i]);
      sum[i] += g * g;
      param[i] -= lr * (g / (std::sqrt(sum[i]) + eps));
    }
  });
}

void rmsprop_step(std::span<const RmspropRow> from, const RMSpropOptions& o) {
  const auto rows = rows_of<5>(from, [](const RmspropRow& r) {
    return Row<5>{r.param, r.grad, r.square_avg, r.momentum_buffer, r.grad_avg};
  });
  fused<5>(rows, [&]<class C>(const Piece<C, 5>& piece) {
    const auto [param, grad, square, buffer, mean] = piece.at;
    const auto directed = direction<C>(o);
    const C lr = C(o.lr), alpha = C(o.alpha), fresh = C(1.0 - o.alpha), eps = C(o.eps), momentum = C(o.momentum);
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const C g = directed(grad[i], param[i]);
      square[i] = alpha * square[i] + fresh * (g * g);
      C spread = square[i];
      if (mean != nullptr) {
        mean[i] += fresh * (g - mean[i]);
        spread -= mean[i] * mean[i];
      }
      C move = g / (std::sqrt(spread) + eps);
      if (buffer != nullptr) move = buffer[i] = momentum * buffer[i] + move;
      param[i] -= lr * move;
    }
  });
}

void ema_step(std::span<const EmaRow> from, double decay) {
  const auto rows = rows_of<2>(from, [](const EmaRow& r) { return Row<2>{r.average, r.value}; });
  fused<2>(rows, [&]<class C>(const Piece<C, 2>& piece) {
    const auto [average, value] = piece.at;
    const C fresh = C(1.0 - decay);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < piece.count; ++i) average[i] += fresh * (value[i] - average[i]);
  });
}

bool unscale(std::span<const Tensor> grads, double factor) {
  std::vector<Row<1>> rows;
  for (const Tensor& grad : grads) rows.push_back({grad});
  std::atomic<bool> finite{true};
  fused<1>(rows, [&]<class C>(const Piece<C, 1>& piece) {
    C* const grad = piece.at[0];
    const C by = C(factor);
    C sum = 0;  // times zero: 0 where all are finite, else NaN
    for (std::int64_t i = 0; i < piece.count; ++i) {
      sum += grad[i] * C(0);
      grad[i] *= by;
    }
    if (!(sum == C(0))) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

}  // namespace infeed::optim

#include "train/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "train/kernels/rows.h"
#include "train/kernels/tile.h"
#include "train/tensor/geometry.h"

namespace infeed::kernels {
namespace {

constexpr std::int64_t kQueries = 48;  // at a time
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One head's matrix: rows of contiguous elements.
struct Head {
  float* data;
  std::int64_t stride;
};
Head head_of(const Tensor& t, std::int64_t unit) {
  const std::int64_t heads = t.size(1);
  return {t.data<float>() + unit / heads * t.strides()[0] + unit % heads * t.strides()[1], t.strides()[2]};
}
Head from_row(Head head, std::int64_t first) { return {head.data + first * head.stride, head.stride}; }

struct Sizes {
  std::int64_t queries, keys, width, value_width;
  bool is_causal;
  float scale;
  /// Keys that the queries [.., last) see.
  [[nodiscard]] std::int64_t seen(std::int64_t last) const { return is_causal ? std::min(keys, last) : keys; }
};
Sizes sizes_of(const AttentionProblem& p) {
  return {p.q.size(2), p.k.size(2), p.q.size(3), p.v.size(3), p.is_causal, p.scale};
}

struct Mask {
  const float* data = nullptr;
  std::int64_t row = 0, column = 0;
};
Mask mask_of(const AttentionProblem& p, std::int64_t unit) {
  if (!p.mask.defined()) return {};
  const Shape shape{p.q.size(0), p.q.size(1), p.q.size(2), p.k.size(2)};
  const Strides strides = broadcast_strides(p.mask.shape(), p.mask.strides(), shape);
  return {p.mask.data<float>() + unit / shape[1] * strides[0] + unit % shape[1] * strides[1], strides[2], strides[3]};
}

// A head's rows, copied to padded ones.
INFEED_CLONES void pad_rows(Padded<float> to, Head from, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* const row = to.data + i * to.stride;
    std::copy_n(from.data + i * from.stride, columns, row);
    std::fill(row + columns, row + to.stride, 0.0f);
  }
}

INFEED_CLONES void pad_transposed(Padded<float> to, Head from, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    float* const row = to.data + c * to.stride;
    for (std::int64_t i = 0; i < rows; ++i) row[i] = from.data[i * from.stride + c];
    std::fill(row + rows, row + to.stride, 0.0f);
  }
}

// scores[n, seen] = q k^T scale + mask, -infinity where a query must not see a key.
INFEED_CLONES void score(Padded<float> scores, Head q, Padded<const float> keys, Mask mask, const Sizes& s,
                         std::int64_t first, std::int64_t n) {
  const std::int64_t seen = s.seen(first + n);
  block_product(scores, {q.data + first * q.stride, q.stride, 1}, keys, n, seen, s.width);
  for (std::int64_t i = 0; i < n; ++i) {
    float* const row = scores.data + i * scores.stride;
    const float* const added = mask.data == nullptr ? nullptr : mask.data + (first + i) * mask.row;
#pragma omp simd
    for (std::int64_t j = 0; j < seen; ++j) row[j] *= s.scale;
    for (std::int64_t j = 0; added != nullptr && j < seen; ++j) row[j] += added[j * mask.column];
    if (s.is_causal) std::fill(row + std::min(seen, first + i + 1), row + seen, -kInfinity);
  }
}

// y[n, Ev] = softmax(scores) values; logsumexp[n].
INFEED_CLONES void mix(Padded<float> y, float* logsumexp, Padded<float> scores, Padded<const float> values,
                       const Sizes& s, std::int64_t n, std::int64_t seen) {
  float scales[kQueries];
  for (std::int64_t i = 0; i < n; ++i) {
    float* const row = scores.data + i * scores.stride;
    const float largest = largest_of(row, seen);
    const float sum = exp_and_sum(row, row, seen, largest == -kInfinity ? 0.0f : largest);
    logsumexp[i] = sum == 0.0f ? kInfinity : largest + std::log(sum);
    scales[i] = sum == 0.0f ? 0.0f : 1.0f / sum;
  }
  block_product(y, {scores.data, scores.stride, 1}, values, n, s.value_width, seen);
  for (std::int64_t i = 0; i < n; ++i) {
#pragma omp simd
    for (std::int64_t c = 0; c < s.value_width; ++c) y.data[i * y.stride + c] *= scales[i];
  }
}

// From p = scores and dp = g v^T: p = exp(p - logsumexp), dp = p (dp - sum(p dp)) scale.
INFEED_CLONES void differentiate(Padded<float> p, Padded<float> dp, const float* logsumexp, float scale, std::int64_t n,
                                 std::int64_t seen) {
  for (std::int64_t i = 0; i < n; ++i) {
    float* const row = p.data + i * p.stride;
    float* const d_row = dp.data + i * dp.stride;
    float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t j = 0; j < seen; ++j) {
      row[j] = fast::exp_of_negative(row[j] - logsumexp[i]);
      dot += row[j] * d_row[j];
    }
#pragma omp simd
    for (std::int64_t j = 0; j < seen; ++j) d_row[j] = row[j] * (d_row[j] - dot) * scale;
  }
}

INFEED_CLONES void multiply(Padded<float> c, Strided a, Padded<const float> b, std::int64_t rows, std::int64_t columns,
                            std::int64_t depth, bool add) {
  block_product(c, a, b, rows, columns, depth, add);
}

void copy_rows(Head to, Padded<const float> from, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from.data + i * from.stride, columns, to.data + i * to.stride);
}

// Blocks of floats for one thread, one after the other in one piece of memory.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats) : memory_(Tensor::empty({floats})), next_(memory_.data<float>()) {}
  Padded<float> take(std::int64_t rows, std::int64_t columns) {
    const Padded<float> block{next_, padded(columns)};
    next_ += rows * block.stride;
    return block;
  }

 private:
  Tensor memory_;
  float* next_;
};

Padded<const float> readable(Padded<float> block) { return {block.data, block.stride}; }

// What one head's gradients need, p (probabilities) and d... (gradients); `across`: transposed.
struct BackwardBlocks {
  Scratch scratch;
  Padded<float> keys_across, values_across, p, dp, keys, dk, q, dq, dv, up;

  explicit BackwardBlocks(const Sizes& s)
      : scratch((s.width + s.value_width + 2 * kQueries) * padded(s.keys) +
                (2 * s.keys + 2 * kQueries) * padded(s.width) + (s.keys + kQueries) * padded(s.value_width)),
        keys_across(scratch.take(s.width, s.keys)),
        values_across(scratch.take(s.value_width, s.keys)),
        p(scratch.take(kQueries, s.keys)),
        dp(scratch.take(kQueries, s.keys)),
        keys(scratch.take(s.keys, s.width)),
        dk(scratch.take(s.keys, s.width)),
        q(scratch.take(kQueries, s.width)),
        dq(scratch.take(kQueries, s.width)),
        dv(scratch.take(s.keys, s.value_width)),
        up(scratch.take(kQueries, s.value_width)) {}
};

// [N, H, rows, columns], in memory in the order of `like`'s dimensions.
Tensor empty_heads(const Tensor& like, std::int64_t rows, std::int64_t columns) {
  const std::int64_t n = like.size(0);
  const std::int64_t heads = like.size(1);
  const bool inside = like.strides()[1] < like.strides()[2];
  return inside ? Tensor::empty({n, rows, heads, columns}).transpose(1, 2) : Tensor::empty({n, heads, rows, columns});
}

}  // namespace

AttentionResult attention(const AttentionProblem& problem) {
  const Sizes s = sizes_of(problem);
  const std::int64_t units = problem.q.size(0) * problem.q.size(1);
  AttentionResult r{empty_heads(problem.q, s.queries, s.value_width),
                    Tensor::empty({problem.q.size(0), problem.q.size(1), s.queries})};
  parallel_for(units, 1, [&](std::int64_t begin, std::int64_t end) {
    Scratch scratch((s.width + kQueries) * padded(s.keys) + (s.keys + kQueries) * padded(s.value_width));
    const auto keys = scratch.take(s.width, s.keys);
    const auto scores = scratch.take(kQueries, s.keys);
    const auto values = scratch.take(s.keys, s.value_width);
    const auto y = scratch.take(kQueries, s.value_width);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      pad_transposed(keys, head_of(problem.k, unit), s.keys, s.width);
      pad_rows(values, head_of(problem.v, unit), s.keys, s.value_width);
      const Head out = head_of(r.y, unit);
      for (std::int64_t first = 0; first < s.queries; first += kQueries) {
        const std::int64_t n = std::min(kQueries, s.queries - first);
        score(scores, head_of(problem.q, unit), readable(keys), mask_of(problem, unit), s, first, n);
        mix(y, r.logsumexp.data<float>() + unit * s.queries + first, scores, readable(values), s, n, s.seen(first + n));
        copy_rows(from_row(out, first), readable(y), n, s.value_width);
      }
    }
  });
  return r;
}

AttentionGrads attention_backward(const Tensor& g, const AttentionProblem& problem, const Tensor& logsumexp) {
  const Sizes s = sizes_of(problem);
  const std::int64_t units = problem.q.size(0) * problem.q.size(1);
  AttentionGrads grads{empty_heads(problem.q, s.queries, s.width), empty_heads(problem.k, s.keys, s.width),
                       empty_heads(problem.v, s.keys, s.value_width)};
  parallel_for(units, 1, [&](std::int64_t begin, std::int64_t end) {
    const BackwardBlocks b(s);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const Head q = head_of(problem.q, unit), up = head_of(g, unit), dq = head_of(grads.q, unit);
      pad_transposed(b.keys_across, head_of(problem.k, unit), s.keys, s.width);
      pad_transposed(b.values_across, head_of(problem.v, unit), s.keys, s.value_width);
      pad_rows(b.keys, head_of(problem.k, unit), s.keys, s.width);
      std::fill_n(b.dk.data, s.keys * b.dk.stride, 0.0f);
      std::fill_n(b.dv.data, s.keys * b.dv.stride, 0.0f);
      for (std::int64_t first = 0; first < s.queries; first += kQueries) {
        const std::int64_t n = std::min(kQueries, s.queries - first);
        const std::int64_t seen = s.seen(first + n);
        pad_rows(b.q, from_row(q, first), n, s.width);
        pad_rows(b.up, from_row(up, first), n, s.value_width);
        score(b.p, q, readable(b.keys_across), mask_of(problem, unit), s, first, n);
        multiply(b.dp, {b.up.data, b.up.stride, 1}, readable(b.values_across), n, seen, s.value_width, false);
        differentiate(b.p, b.dp, logsumexp.data<float>() + unit * s.queries + first, s.scale, n, seen);
        multiply(b.dq, {b.dp.data, b.dp.stride, 1}, readable(b.keys), n, s.width, seen, false);
        multiply(b.dk, {b.dp.data, 1, b.dp.stride}, readable(b.q), seen, s.width, n, true);
        multiply(b.dv, {b.p.data, 1, b.p.stride}, readable(b.up), seen, s.value_width, n, true);
        copy_rows(from_row(dq, first), readable(b.dq), n, s.width);
      }
      copy_rows(head_of(grads.k, unit), readable(b.dk), s.keys, s.width);
      copy_rows(head_of(grads.v, unit), readable(b.dv), s.keys, s.value_width);
    }
  });
  return grads;
}

}  // namespace infeed::kernels
